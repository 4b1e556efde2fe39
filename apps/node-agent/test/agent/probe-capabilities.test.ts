import { modelRoutesSchema } from '@firecrew/backend';
import { nodeCapabilitiesSchema } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { probeCapabilities } from '../../src/agent/probe-capabilities.ts';

describe('what a node says of its model routes', () => {
  it('is backend and format, and nothing of upstream, credential, certificates or prices', async () => {
    const routes = modelRoutesSchema.parse({
      command: {
        format: 'openai_chat',
        upstream: 'https://secret.test/base',
        credential: { file: '/secret/key' },
        caFile: '/secret/ca',
        priceFile: '/secret/prices',
        models: ['secret-model'],
      },
    });
    const said = await probeCapabilities([], '1', routes);
    expect(nodeCapabilitiesSchema.parse(said).modelRoutes).toEqual([{ backend: 'command', format: 'openai_chat' }]);
    expect(JSON.stringify(said)).not.toContain('secret');
  });

  it('is an empty list where it has none: silence is of nodes that do not know the field', async () => {
    expect((await probeCapabilities([], '1')).modelRoutes).toEqual([]);
  });
});

import { modelRoutesSchema } from '@firecrew/backend';
import { type NodeBackend, nodeCapabilitiesSchema } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { type ProbedDriver, probeCapabilities } from '../../src/agent/probe-capabilities.ts';
import type { ImageProbe } from '../../src/vm/vm-source.ts';

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
    const said = await probeCapabilities({ drivers: [], backends: [], agentVersion: '1', modelRoutes: routes });
    expect(nodeCapabilitiesSchema.parse(said).modelRoutes).toEqual([{ backend: 'command', format: 'openai_chat' }]);
    expect(JSON.stringify(said)).not.toContain('secret');
  });

  it('is an empty list where it has none: silence is of nodes that do not know the field', async () => {
    expect((await probeCapabilities({ drivers: [], backends: [], agentVersion: '1' })).modelRoutes).toEqual([]);
  });
});

describe('which backends a node says that it can boot', () => {
  const yes = (detail: string) => ({ available: true, isolation: 'vm', detail }) as const;
  const no = (detail: string) => ({ available: false, isolation: 'vm', detail }) as const;
  const backendOf = (name: string, image: string | null, drivers: NodeBackend['drivers'] = ['qemu']): NodeBackend => ({
    name,
    image,
    drivers,
    variables: [],
  });
  const backends = [
    backendOf('command', null, ['process', 'qemu']),
    backendOf('here', 'here'),
    backendOf('absent', 'absent'),
    backendOf('other', 'here', ['firecracker']),
  ];
  const imagesOf = (images: Record<string, ImageProbe>, own: ImageProbe): ProbedDriver => ({
    name: 'qemu',
    probe: async () => own,
    probeImage: async (image) => images[image] ?? no(`nothing named ${image}`),
  });
  const say = async (driver: ProbedDriver) => {
    const { drivers, unavailable } = await probeCapabilities({ drivers: [driver], backends, agentVersion: '1' });
    return { drivers, unavailable };
  };

  it('is those whose image has booted, and it tells why another has not', async () => {
    expect(await say(imagesOf({ here: yes('booted') }, yes('a probe boot worked')))).toEqual({
      drivers: [
        {
          driver: 'qemu',
          isolation: 'vm',
          backends: ['command', 'here'],
          detail: 'a probe boot worked',
          lacking: [{ backend: 'absent', detail: 'nothing named absent' }],
        },
      ],
      unavailable: [],
    });
  });

  it('says of one that it lacks whether that is on its way', async () => {
    const driver = imagesOf({ here: { ...no('being fetched'), coming: true } }, yes('there'));
    expect((await say(driver)).drivers[0]?.lacking).toEqual([
      { backend: 'here', detail: 'being fetched', coming: true },
      { backend: 'absent', detail: 'nothing named absent' },
    ]);
    expect((await say(imagesOf({}, { ...no('being fetched'), coming: true }))).unavailable).toEqual([
      { driver: 'qemu', detail: 'being fetched', coming: true },
    ]);
  });

  it('does not depend on the default image, which other backends run in', async () => {
    expect((await say(imagesOf({ here: yes('booted') }, no('nothing named default')))).drivers).toMatchObject([{ backends: ['here'] }]);
    const { drivers, unavailable } = await say(imagesOf({}, no('nothing named default')));
    expect(drivers).toEqual([]);
    expect(unavailable).toEqual([{ driver: 'qemu', detail: 'nothing named default' }]);
  });

  it('has none with an image where a driver has no images', async () => {
    const driver: ProbedDriver = { name: 'qemu', probe: async () => yes('there') };
    expect((await say(driver)).drivers).toMatchObject([
      { backends: ['command'], lacking: [{ backend: 'here', detail: 'the driver has no images' }, { backend: 'absent' }] },
    ]);
  });
});

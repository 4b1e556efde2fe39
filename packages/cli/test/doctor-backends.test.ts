import { describe, expect, it } from 'vitest';
import { judgeBackend } from '../src/commands/doctor-backends.ts';
import { mergeSettings } from '../src/settings/settings.ts';

const ROUTED = { name: 'some-agent', image: 'some-image', modelRoute: { format: 'anthropic_messages' } } as const;
const settings = (format?: string) =>
  mergeSettings([
    {
      name: 'config.json',
      value:
        format === undefined
          ? {}
          : { modelRoutes: { 'some-agent': { format, upstream: 'https://models.example.test', credential: null } } },
    },
  ]);

describe('what the doctor says of a backend', () => {
  it.each<[string, Parameters<typeof judgeBackend>[0], string | undefined, string | undefined, string, RegExp]>([
    ['has all of it', ROUTED, 'anthropic_messages', undefined, 'ok', /^some-agent has what it needs$/],
    ['has no image', ROUTED, 'anthropic_messages', 'nothing is named some-image', 'warning', /no image here: nothing is named some-image/],
    [
      'has no route',
      ROUTED,
      undefined,
      undefined,
      'warning',
      /needs a model route in the format anthropic_messages, and the settings name none/,
    ],
    ['has a route of another format', ROUTED, 'openai_chat', undefined, 'warning', /that of the settings speaks openai_chat/],
    ['needs neither', { ...ROUTED, image: null, modelRoute: null }, undefined, 'not asked for', 'ok', /has what it needs/],
  ])('that %s', async (_what, backend, format, fault, state, words) => {
    const found = await judgeBackend(backend, settings(format), '$EDITOR config.json', async () => fault);
    expect(found).toMatchObject({ check: 'backends', state, detail: expect.stringMatching(words) });
    expect(found.fix === null).toBe(state === 'ok');
  });
});

import type { MissionEvent } from '@firecrew/protocol';
import { expect, it } from 'vitest';
import { renderEvent } from '../src/render/render-event.ts';

const notice = (event: 'open' | 'refused' | 'end'): MissionEvent => ({
  seq: 1,
  at: '2026-01-01T00:00:00.000Z',
  body: {
    kind: 'turn.event',
    phaseId: 'phs_0000000000000000',
    turnId: 'trn_0000000000000000',
    attempt: 1,
    seq: 1,
    body: {
      kind: 'notice',
      level: event === 'refused' ? 'warning' : 'info',
      code: `model_call_${event}`,
      message: 'what happened',
      call: {
        event,
        call: 1,
        reason: event === 'refused' ? 'feature_refused' : 'listed',
        path: '/v1/messages',
        model: 'm',
        features: [],
        status: null,
        usage: null,
        chargedTokens: null,
        chargedMicros: null,
        leaks: 0,
        durationMs: null,
      },
    },
  },
});

it.each([
  ['open', []],
  ['end', []],
  ['refused', [{ tone: 'warn', text: 'model_call_refused: what happened' }]],
] as const)('a model call (%s) is shown to people where it was refused alone', (event, lines) => {
  expect(renderEvent(notice(event))).toEqual(lines);
});

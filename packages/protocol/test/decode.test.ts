import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONTROL_REQUEST_TYPES,
  controlRequestSchema,
  countStripped,
  decodeMessage,
  decodeValue,
  GUEST_REQUEST_TYPES,
  guestRequestSchema,
  HOST_REQUEST_TYPES,
  hostRequestSchema,
  NODE_MESSAGE_TYPES,
  negotiateGeneration,
  nodeMessageSchema,
  parseJson,
  SERVER_MESSAGE_TYPES,
  serverMessageSchema,
  turnSpecSchema,
} from '../src/index.ts';

const KEY = { turnId: 'trn_0123456789abcdef', attempt: 1, epoch: 1 };

describe('a message', () => {
  it('is decoded, and fields this generation does not know are stripped and counted', () => {
    const decoded = decodeMessage(nodeMessageSchema, NODE_MESSAGE_TYPES, { t: 'turn.accepted', ...KEY, colour: 'red', more: { deep: 1 } });
    expect(decoded).toEqual({ ok: true, value: { t: 'turn.accepted', ...KEY }, unknownFields: 2 });
  });

  it.each([[{ t: 'turn.exploded' }], [{}], [null], ['text'], [{ t: 7 }], [[]]])(
    'of a type that is not known is refused as such: %j',
    (input) => {
      expect(decodeMessage(nodeMessageSchema, NODE_MESSAGE_TYPES, input)).toMatchObject({ ok: false, code: 'unknown_message' });
    },
  );

  it('of a known type and another shape is refused with the place', () => {
    const decoded = decodeMessage(nodeMessageSchema, NODE_MESSAGE_TYPES, { t: 'turn.accepted', ...KEY, attempt: 0 });
    expect(decoded).toMatchObject({ ok: false, code: 'invalid_message', message: expect.stringContaining('attempt') });
  });

  it('with a member that a closed list does not have is refused, never dropped', () => {
    const decoded = decodeMessage(serverMessageSchema, SERVER_MESSAGE_TYPES, { t: 'turn.cancel', ...KEY, reason: 'because' });
    expect(decoded).toMatchObject({ ok: false, code: 'invalid_message' });
  });

  it('that is not JSON quotes only its head', () => {
    const parsed = parseJson(`{${'x'.repeat(10_000)}`);
    expect(parsed).toMatchObject({ ok: false, code: 'not_json' });
    expect(parsed.ok ? '' : parsed.message.length).toBeLessThan(250);
  });
});

describe('the lists of message types', () => {
  it.each([
    ['host request', hostRequestSchema, HOST_REQUEST_TYPES],
    ['guest request', guestRequestSchema, GUEST_REQUEST_TYPES],
    ['node message', nodeMessageSchema, NODE_MESSAGE_TYPES],
    ['server message', serverMessageSchema, SERVER_MESSAGE_TYPES],
    ['control request', controlRequestSchema, CONTROL_REQUEST_TYPES],
  ])('of a %s are those of its schema', (_name, schema, types) => {
    const known = schema.options.map((option) => [...option.shape.t.values][0]);
    expect([...types].sort()).toEqual([...known].sort());
  });
});

describe('a turn specification', () => {
  it('with a key that is not understood is refused: it may be a policy', () => {
    const decoded = decodeValue(turnSpecSchema, { generation: 1, noNetwork: true });
    expect(decoded).toMatchObject({ ok: false, code: 'invalid_message', message: expect.stringContaining('noNetwork') });
  });
});

describe('generations', () => {
  it.each([
    [1, 1, { ok: true, generation: 1 }],
    [7, 1, { ok: true, generation: 1 }],
    [0, 0, { ok: false, code: 'generation_too_old' }],
    [7, 2, { ok: false, code: 'generation_too_new' }],
  ])('%i offered, %i at least: %j', (offered, least, expected) => {
    expect(negotiateGeneration('nodeLink', offered, least)).toMatchObject(expected);
  });
});

describe('counting what was stripped', () => {
  it('finds none in what was kept whole', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => countStripped(value, structuredClone(value)) === 0));
  });

  it('looks into arrays and objects', () => {
    expect(countStripped({ a: [{ b: 1, c: 2 }], d: 3 }, { a: [{ b: 1 }] })).toBe(2);
  });
});

describe('any bytes', () => {
  it('never make a decoder throw', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...NODE_MESSAGE_TYPES), (value, t) => {
        const input = typeof value === 'object' && value !== null ? { ...value, t } : value;
        expect(typeof decodeMessage(nodeMessageSchema, NODE_MESSAGE_TYPES, input).ok).toBe('boolean');
      }),
    );
  });
});

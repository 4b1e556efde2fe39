import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Inbox, ownPart } from '../src/inbox.ts';

it('gives back the bytes in order whatever is added and taken when', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.integer({ min: 1, max: 40_000 }), fc.constant('take' as const)), { maxLength: 30 }), (steps) => {
      const inbox = new Inbox();
      const sent: Buffer[] = [];
      const got: Uint8Array[] = [];
      let next = 0;
      for (const step of steps) {
        if (step === 'take') {
          const chunk = inbox.take();
          if (chunk !== undefined) got.push(chunk);
          continue;
        }
        next += 1;
        const part = Buffer.alloc(step, next);
        sent.push(part);
        inbox.add(part);
      }
      for (let chunk = inbox.take(); chunk !== undefined; chunk = inbox.take()) got.push(chunk);
      expect(inbox.bytes).toBe(0);
      expect(Buffer.concat(got).equals(Buffer.concat(sent))).toBe(true);
    }),
  );
});

it('holds a small multiple of its bytes when they come one at a time out of large chunks', () => {
  const inbox = new Inbox();
  const count = 100_000;
  for (let index = 0; index < count; index += 1) inbox.add(Buffer.from(new ArrayBuffer(1_024)).subarray(7, 8));
  expect(inbox.bytes).toBe(count);
  const memory = new Set<ArrayBufferLike>();
  for (let chunk = inbox.take(); chunk !== undefined; chunk = inbox.take()) memory.add(chunk.buffer);
  const held = [...memory].reduce((sum, buffer) => sum + buffer.byteLength, 0);
  expect(held).toBeLessThan(2 * count);
});

it('keeps large parts as views and copies small ones out of large memory', () => {
  const memory = Buffer.from(new ArrayBuffer(1_000));
  expect(ownPart(memory.subarray(0, 250)).buffer).toBe(memory.buffer);
  expect(ownPart(memory.subarray(0, 249)).buffer.byteLength).toBe(249);
});

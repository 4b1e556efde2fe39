import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  ANSWER_MAGIC,
  decodeAnswer,
  decodePreamble,
  encodeAnswer,
  encodePreamble,
  PREAMBLE_BYTES,
  PREAMBLE_MAGIC,
} from '../src/preamble.ts';
import { MagicScanner, type ScanResult } from '../src/scan-magic.ts';

const MAX_STALE = 500;
const block = encodePreamble({ epoch: Buffer.alloc(8, 1), generation: 9, secret: Buffer.alloc(32, 2) });

function scanner(wanted: (bytes: Uint8Array) => boolean = () => true): MagicScanner {
  return new MagicScanner({ magic: PREAMBLE_MAGIC, blockBytes: PREAMBLE_BYTES, maxStaleBytes: MAX_STALE, wanted });
}

it('finds the preamble behind any stale bytes, whatever the cuts, and keeps what follows', () => {
  const stale = fc.oneof(
    fc.uint8Array({ maxLength: MAX_STALE }),
    fc.array(fc.constantFrom(...PREAMBLE_MAGIC), { maxLength: MAX_STALE }).map((bytes) => Uint8Array.from(bytes)),
  );
  fc.assert(
    fc.property(stale, fc.uint8Array({ maxLength: 20 }), fc.integer({ min: 1, max: 70 }), (before, after, cut) => {
      fc.pre(!Buffer.from(before).includes(Buffer.from(PREAMBLE_MAGIC)));
      const bytes = Buffer.concat([before, block, after]);
      const scan = scanner();
      let result: ScanResult = { state: 'more' };
      let at = 0;
      while (result.state === 'more') {
        result = scan.push(bytes.subarray(at, at + cut));
        at += cut;
      }
      if (result.state !== 'found') throw new Error(result.state);
      expect(Buffer.from(result.block).equals(block)).toBe(true);
      expect(Buffer.concat([result.rest, bytes.subarray(at)]).equals(Buffer.from(after))).toBe(true);
      expect(scan.staleBytes).toBe(before.length);
    }),
  );
});

it('gives up one byte past the bound of stale bytes, not at it', () => {
  expect(scanner().push(Buffer.concat([Buffer.alloc(MAX_STALE), block])).state).toBe('found');
  expect(scanner().push(Buffer.concat([Buffer.alloc(MAX_STALE + 1), block])).state).toBe('too_much');
});

it('skips a block that is not the wanted one, and finds the wanted one inside it', () => {
  const other = Buffer.concat([PREAMBLE_MAGIC, Buffer.alloc(8, 5)]);
  const result = scanner((bytes) => decodePreamble(bytes).generation === 9).push(Buffer.concat([other, block]));
  expect(result.state).toBe('found');
});

it('uses magics whose parts never repeat their beginning and that begin with no frame type', () => {
  for (const magic of [PREAMBLE_MAGIC, ANSWER_MAGIC]) {
    expect(magic).toHaveLength(8);
    expect(magic[0]).toBe(0xff);
    expect(magic.indexOf(0xff, 1)).toBe(-1);
  }
});

it('reads back preambles and answers, and no answer with an unknown verdict', () => {
  expect(decodePreamble(block)).toEqual({ epoch: new Uint8Array(8).fill(1), generation: 9, secret: new Uint8Array(32).fill(2) });
  const answer = encodeAnswer({ epoch: Buffer.alloc(8, 1), generation: 0xffff_ffff, verdict: 'generation_mismatch' });
  expect(decodeAnswer(answer)).toEqual({ epoch: new Uint8Array(8).fill(1), generation: 0xffff_ffff, verdict: 'generation_mismatch' });
  answer[answer.length - 1] = 4;
  expect(decodeAnswer(answer)).toBeUndefined();
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameBytes, nameText } from '../src/index.ts';

describe('the text of a byte name', () => {
  it('is the name itself where that is UTF-8', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const whole = text.toWellFormed();
        expect(nameText(Buffer.from(whole))).toBe(whole);
      }),
    );
    expect(nameText(Buffer.from('\ufeffa'))).toBe('\ufeffa');
  });

  it('gives back the bytes of every name, so that no two become one', () => {
    const bytes = fc.uint8Array({ maxLength: 40 });
    fc.assert(
      fc.property(bytes, (name) => {
        expect([...nameBytes(nameText(name))]).toEqual([...name]);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['a byte alone', [0x61, 0xff, 0x62], 'a\udcffb'],
    ['a sequence that is cut', [0xe2, 0x82], '\udce2\udc82'],
    ['a surrogate in UTF-8', [0xed, 0xb3, 0xbf], '\udced\udcb3\udcbf'],
    ['an overlong slash', [0xc0, 0xaf], '\udcc0\udcaf'],
    ['a character after one that is none', [0xff, 0xc3, 0xbc], '\udcffü'],
  ])('escapes %s', (_what, bytes, text) => {
    expect(nameText(Uint8Array.from(bytes))).toBe(text);
  });
});

import { describe, expect, it } from 'vitest';
import { decideRange } from '../../src/http/decide-range.ts';

describe('a range of a file of 100 bytes', () => {
  it.each([
    [undefined, { verdict: 'whole' }],
    ['bytes=0-', { verdict: 'part', first: 0, last: 99 }],
    ['bytes=30-', { verdict: 'part', first: 30, last: 99 }],
    ['bytes=99-', { verdict: 'part', first: 99, last: 99 }],
    ['bytes=30-40', { verdict: 'part', first: 30, last: 40 }],
    ['bytes=30-1000', { verdict: 'part', first: 30, last: 99 }],
  ])('%s', (header, expected) => {
    expect(decideRange(header, 100)).toEqual(expected);
  });

  it.each([
    'bytes=100-',
    'bytes=40-30',
    'bytes=-10',
    'bytes=0-1,3-4',
    'bytes=0-0, 0-0',
    'bytes=01-',
    'bytes=+1-',
    'bytes=1e1-',
    'bytes= 1-',
    'bytes=99999999999999999999-',
    'bytes=',
    'items=0-1',
    '',
  ])('%j is refused', (header) => {
    expect(decideRange(header, 100)).toEqual({ verdict: 'refused' });
  });

  it('of an empty file there is none', () => {
    expect(decideRange('bytes=0-', 0)).toEqual({ verdict: 'refused' });
  });
});

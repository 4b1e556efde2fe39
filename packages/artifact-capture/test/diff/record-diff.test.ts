import { describe, expect, it } from 'vitest';
import {
  clampBothEnds,
  MAX_CAPTURED_PATHS,
  MAX_DIFF_ERROR_CHARS,
  MAX_PATCH_BYTES,
  parseNameStatus,
  parseNumstat,
  recordDiff,
  sumStats,
} from '../../src/index.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined) => Buffer.from(value ?? []).toString('latin1');
const ok = (value: string) => ({ ok: true, bytes: bytes(value) }) as const;
const failed = (error: string) => ({ ok: false, error }) as const;

describe('parseNameStatus', () => {
  it('reads every letter, counts a rename once as its new path, and keeps odd names', () => {
    const listing = 'M\0a\0A\0tab\tquote"\nnew line\0D\0gone\0T\0t\0R087\0old\0new\0C100\0from\0to\0';
    const changes = parseNameStatus(bytes(listing)).map((change) => [change.status, text(change.path), text(change.from)]);
    expect(changes).toEqual([
      ['M', 'a', ''],
      ['A', 'tab\tquote"\nnew line', ''],
      ['D', 'gone', ''],
      ['T', 't', ''],
      ['R', 'new', 'old'],
      ['C', 'to', 'from'],
    ]);
  });

  it('keeps bytes that are no text', () => {
    expect(parseNameStatus(new Uint8Array([0x4d, 0, 0x80, 0xff, 0]))[0]?.path).toEqual(new Uint8Array([0x80, 0xff]));
  });

  it.each(['M', 'M\0', 'M\0a', 'X\0a\0', 'U\0a\0', 'R\0a\0b\0', 'R1000\0a\0b\0', 'R100\0a\0', 'M \0a\0', '\0a\0', 'M\0\0'])(
    'refuses %j',
    (listing) => {
      expect(() => parseNameStatus(bytes(listing))).toThrow(expect.objectContaining({ code: 'malformed_listing' }));
    },
  );
});

describe('parseNumstat', () => {
  it('reads counts, binary files and renames', () => {
    const stats = parseNumstat(bytes('1\t2\ta\tb\0-\t-\tpic.png\x003\t0\t\0old\0new\0'));
    expect(stats.map((stat) => [text(stat.path), stat.insertions, stat.deletions, stat.isBinary])).toEqual([
      ['a\tb', 1, 2, false],
      ['pic.png', 0, 0, true],
      ['new', 3, 0, false],
    ]);
    expect(sumStats(stats)).toEqual({ files: 3, insertions: 4, deletions: 2, binaryFiles: 1 });
  });

  it('sums nothing to zeros', () => {
    expect(sumStats(parseNumstat(bytes('')))).toEqual({ files: 0, insertions: 0, deletions: 0, binaryFiles: 0 });
  });

  it.each(['1\t2\ta', '1\ta\0', 'x\t2\ta\0', '-\t2\ta\0', '1\t2\t\0old\0', '\0'])('refuses %j', (listing) => {
    expect(() => parseNumstat(bytes(listing))).toThrow(expect.objectContaining({ code: 'malformed_listing' }));
  });
});

describe('recordDiff', () => {
  const empty = { patch: ok(''), nameStatus: ok(''), numstat: ok('') };

  it('calls a diff empty only when all of it was computed', () => {
    expect(recordDiff(empty)).toMatchObject({ isEmpty: true, isComplete: true, errors: [] });
    for (const part of ['patch', 'nameStatus', 'numstat'] as const) {
      const record = recordDiff({ ...empty, [part]: failed('fatal: index file corrupt') });
      expect(record).toMatchObject({ isEmpty: false, isComplete: false, errors: [{ why: 'fatal: index file corrupt' }] });
    }
  });

  it('keeps a patch whose counts failed', () => {
    const record = recordDiff({ patch: ok('diff'), nameStatus: ok('M\0a\0'), numstat: failed('no') });
    expect(text(record.patch)).toBe('diff');
    expect(record).toMatchObject({ isEmpty: false, isComplete: false, errors: [{ what: 'numstat', why: 'no' }], fileCount: 1 });
  });

  it('turns a listing that does not parse into an error', () => {
    expect(recordDiff({ ...empty, nameStatus: ok('M\0a') })).toMatchObject({ isEmpty: false, errors: [{ what: 'name_status' }] });
  });

  it.each([
    [MAX_PATCH_BYTES, false],
    [MAX_PATCH_BYTES + 1, true],
  ])('keeps the head of a patch of %d bytes', (size, truncated) => {
    const patch = new Uint8Array(size).fill(0x61);
    const record = recordDiff({ ...empty, patch: { ok: true, bytes: patch } });
    expect(record).toMatchObject({ truncated, patchBytes: size });
    expect(record.patch?.length).toBe(MAX_PATCH_BYTES);
  });

  it.each([
    [MAX_CAPTURED_PATHS, false],
    [MAX_CAPTURED_PATHS + 1, true],
  ])('keeps 500 of %d paths', (count, filesTruncated) => {
    const listing = Array.from({ length: count }, (_, at) => `A\0f${at}\0`).join('');
    const record = recordDiff({ ...empty, nameStatus: ok(listing) });
    expect(record.files.length).toBe(500);
    expect(record).toMatchObject({ filesTruncated, fileCount: count, isEmpty: false });
  });

  it('pins its bounds', () => {
    expect([MAX_PATCH_BYTES, MAX_CAPTURED_PATHS, MAX_DIFF_ERROR_CHARS]).toEqual([4_194_304, 500, 300]);
  });
});

describe('clampBothEnds', () => {
  it('leaves what fits and keeps head and tail of the rest', () => {
    expect(clampBothEnds('x'.repeat(300))).toBe('x'.repeat(300));
    const clamped = clampBothEnds(`head${'x'.repeat(400)}tail`);
    expect(clamped.length).toBe(300);
    expect(clamped).toMatch(/^head.* \.\.\. .*tail$/);
  });
});

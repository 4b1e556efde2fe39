import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CaptureError, type FileStat, type NameStatus, parseNameStatus, parseNumstat, sumStats } from '../../src/index.ts';

/** A path as git may name one: any bytes but NUL, and at least one. */
const path = fc.uint8Array({ minLength: 1, maxLength: 24 }).map((bytes) => Buffer.from(bytes.map((byte) => byte || 0x2f)));
const nul = Buffer.from([0]);
const line = (...fields: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat(fields.flatMap((field) => [typeof field === 'string' ? Buffer.from(field) : field, nul]));
const plain = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const change: fc.Arbitrary<{ readonly raw: Buffer; readonly means: NameStatus }> = fc.oneof(
  fc.record({ status: fc.constantFrom('A', 'D', 'M', 'T'), path }).map(({ status, path: to }) => ({
    raw: line(status, to),
    means: { status: status as NameStatus['status'], path: to },
  })),
  fc.record({ status: fc.constantFrom('R', 'C'), like: fc.integer({ min: 0, max: 100 }), from: path, to: path }).map((one) => ({
    raw: line(`${one.status}${String(one.like).padStart(3, '0')}`, one.from, one.to),
    means: { status: one.status as NameStatus['status'], path: one.to, from: one.from },
  })),
);

const stat: fc.Arbitrary<{ readonly raw: Buffer; readonly means: FileStat }> = fc
  .record({
    counts: fc.option(fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000)), { nil: undefined }),
    from: fc.option(path, { nil: undefined }),
    to: path,
  })
  .map(({ counts, from, to }) => {
    const head = counts === undefined ? '-\t-\t' : `${counts[0]}\t${counts[1]}\t`;
    const raw = from === undefined ? line(Buffer.concat([Buffer.from(head), to])) : line(head, from, to);
    return { raw, means: { path: to, insertions: counts?.[0] ?? 0, deletions: counts?.[1] ?? 0, isBinary: counts === undefined } };
  });

/** Bytes of a listing with some of them changed, cut or added. */
const broken = (whole: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> =>
  fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.tuple(whole, fc.nat(), fc.nat(255)).map(([bytes, at, byte]) => {
      if (bytes.length > 0) bytes[at % bytes.length] = byte;
      return bytes;
    }),
    fc.tuple(whole, fc.nat()).map(([bytes, at]) => bytes.subarray(0, bytes.length === 0 ? 0 : at % bytes.length)),
  );

function refusesOrReads<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    expect(error).toBeInstanceOf(CaptureError);
    expect(error).toMatchObject({ code: 'malformed_listing' });
    return undefined;
  }
}

describe('the listing of a diff', () => {
  it('gives each changed path once, whatever bytes it is of', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
        const read = parseNameStatus(Buffer.concat(changes.map(({ raw }) => raw)));
        expect(read.map((one) => [one.status, plain(one.path), plain(one.from ?? nul)])).toEqual(
          changes.map(({ means }) => [means.status, plain(means.path), plain(means.from ?? nul)]),
        );
      }),
    );
  });

  it('that is broken is refused by its code, or read as paths that it holds', () => {
    const whole = fc.array(change, { maxLength: 6 }).map((changes) => Buffer.concat(changes.map(({ raw }) => raw)));
    fc.assert(
      fc.property(broken(whole), (bytes) => {
        for (const one of refusesOrReads(() => parseNameStatus(bytes)) ?? []) expect(bytes.includes(Buffer.from(one.path))).toBe(true);
      }),
    );
  });
});

describe('the counts of a diff', () => {
  it('are those of each path, and their sums', () => {
    fc.assert(
      fc.property(fc.array(stat, { maxLength: 12 }), (stats) => {
        const read = parseNumstat(Buffer.concat(stats.map(({ raw }) => raw)));
        const shown = (one: FileStat): unknown[] => [plain(one.path), one.insertions, one.deletions, one.isBinary];
        expect(read.map(shown)).toEqual(stats.map(({ means }) => shown(means)));
        const add = (pick: (one: FileStat) => number): number => stats.reduce((sum, { means }) => sum + pick(means), 0);
        expect(sumStats(read)).toEqual({
          files: stats.length,
          insertions: add((one) => one.insertions),
          deletions: add((one) => one.deletions),
          binaryFiles: add((one) => (one.isBinary ? 1 : 0)),
        });
      }),
    );
  });

  it('that are broken are refused by their code, or read as whole numbers', () => {
    const whole = fc.array(stat, { maxLength: 6 }).map((stats) => Buffer.concat(stats.map(({ raw }) => raw)));
    fc.assert(
      fc.property(broken(whole), (bytes) => {
        for (const one of refusesOrReads(() => parseNumstat(bytes)) ?? []) {
          expect(Number.isSafeInteger(one.insertions) && Number.isSafeInteger(one.deletions)).toBe(true);
        }
      }),
    );
  });
});

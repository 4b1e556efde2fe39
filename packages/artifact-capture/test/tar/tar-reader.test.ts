import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CaptureError,
  compareEntries,
  MAX_TRAILING_BYTES,
  type TarEvent,
  TarReader,
  type TreeLimits,
  tarEnd,
  tarPadding,
  writeTarHeader,
} from '../../src/index.ts';
import { tree } from '../arbitraries.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const file = (path: string, content = '', extra: Partial<Parameters<typeof writeTarHeader>[0]> = {}) =>
  Buffer.concat([
    writeTarHeader({ path: bytes(path), kind: 'file', size: content.length, ...extra }),
    bytes(content),
    tarPadding(content.length),
  ]);
const folder = (path: string) => writeTarHeader({ path: bytes(path), kind: 'directory', size: 0 });
const symlink = (path: string, target: string) => writeTarHeader({ path: bytes(path), kind: 'link', size: 0, target: bytes(target) });

/** A header with fields overwritten and its checksum made right again. */
function patched(header: Uint8Array, changes: Record<number, Uint8Array>): Buffer {
  const block = Buffer.from(header);
  for (const [at, value] of Object.entries(changes)) block.set(value, Number(at));
  block.fill(0x20, 148, 156);
  const sum = block.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

const hardLink = (path: string, target: string) => patched(symlink(path, target), { 156: bytes('1') });
const pax = (records: string, flag = 'x') =>
  Buffer.concat([
    patched(file('pax'), { 124: bytes(`${records.length.toString(8).padStart(11, '0')}\0`), 156: bytes(flag) }),
    bytes(records),
    tarPadding(records.length),
  ]);
const gnu = (flag: string, text: string) => pax(`${text}\0`, flag);

function read(archive: Uint8Array, limits: Partial<TreeLimits> = {}, cut = archive.length): TarEvent[] {
  const reader = new TarReader(limits);
  const events: TarEvent[] = [];
  for (let at = 0; at < archive.length; at += Math.max(1, cut)) events.push(...reader.push(archive.slice(at, at + Math.max(1, cut))));
  reader.finish();
  return events;
}

const archive = (...parts: Uint8Array[]) => Buffer.concat([...parts, tarEnd()]);
const codeOf = (work: () => unknown) => {
  try {
    work();
    return 'accepted';
  } catch (error) {
    return error instanceof CaptureError ? error.code : `other: ${String(error)}`;
  }
};

describe('TarReader', () => {
  it('gives back every tree that the writer wrote, however the stream is cut', () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: 1, max: 1500 }), (entries, cut) => {
        const sorted = [...entries].sort((a, b) => compareEntries(a.entry, b.entry));
        const parts = sorted.flatMap(({ entry, content }) =>
          entry.kind === 'link' || entry.kind === 'directory'
            ? [writeTarHeader({ path: entry.path, kind: entry.kind, size: 0, target: content })]
            : [writeTarHeader({ path: entry.path, kind: entry.kind, size: content.length }), content, tarPadding(content.length)],
        );
        const events = read(archive(...parts), {}, cut);
        const named = events.filter((event) => event.kind === 'entry').map(({ entry }) => Buffer.from(entry.path).toString('hex'));
        expect(named).toEqual(sorted.map(({ entry }) => Buffer.from(entry.path).toString('hex')));
        const content = Buffer.concat(events.flatMap((event) => (event.kind === 'data' ? [event.bytes] : [])));
        const expected = Buffer.concat(
          sorted.flatMap((item) => (item.entry.kind === 'file' || item.entry.kind === 'executable' ? [item.content] : [])),
        );
        expect(content.equals(expected)).toBe(true);
        expect(events.at(-1)).toEqual({ kind: 'end' });
      }),
    );
  });

  it('never throws anything but a coded refusal on bytes with a damaged place', () => {
    const whole = archive(folder('d'), file('d/a', 'content'), symlink('l', 'd/a'), file('ü'.repeat(90), 'long name'));
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 0, max: 255 }), (at, value) => {
        const damaged = Buffer.from(whole);
        damaged[at] = value;
        expect(codeOf(() => read(damaged))).not.toMatch(/^other/);
      }),
      { numRuns: 2000 },
    );
  });

  it.each<[string, Uint8Array, string]>([
    ['no bytes', new Uint8Array(0), 'missing_end'],
    ['an entry without an end mark', file('a', 'x'), 'missing_end'],
    ['one zero block only', Buffer.concat([file('a'), new Uint8Array(512)]), 'missing_end'],
    ['a cut in a header', file('a', 'x').subarray(0, 100), 'truncated'],
    ['a cut in a body', file('a', 'x'.repeat(600)).subarray(0, 700), 'truncated'],
    ['a header after one zero block', Buffer.concat([new Uint8Array(512), archive(file('a'))]), 'content_after_end'],
    ['content after the end mark', Buffer.concat([archive(file('a')), file('b')]), 'content_after_end'],
    ['a wrong checksum', archive(Buffer.concat([Buffer.from('b'), file('a').subarray(1)])), 'bad_checksum'],
    ['an unknown magic', archive(patched(file('a'), { 257: bytes('other\x0000') })), 'bad_magic'],
    ['a size with a letter behind', archive(patched(file('a'), { 124: bytes('0000000002x\0') })), 'bad_number'],
    ['a negative size', archive(patched(file('a'), { 124: new Uint8Array(12).fill(0xff) })), 'bad_number'],
    ['a folder without a name', archive(patched(folder(''), { 0: new Uint8Array(1) })), 'empty_path'],
    ['a blank size', archive(patched(file('a'), { 124: bytes('            ') })), 'bad_number'],
    [
      'a base-256 size with other marks',
      archive(patched(file('a'), { 124: new Uint8Array([0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) })),
      'bad_number',
    ],
    [
      'a base-256 size past 2^53-1',
      archive(patched(file('a'), { 124: new Uint8Array([0x80, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]) })),
      'bad_number',
    ],
    ['a pax record without a length', archive(pax(' path=a\n'), file('x')), 'bad_pax_record'],
    ['a pax record without an equals sign', archive(pax('7 abcd\n'), file('x')), 'bad_pax_record'],
    ['a pax record without a key', archive(pax('5 =a\n'), file('x')), 'bad_pax_record'],
    ['a pax record that ends in no newline', archive(pax('9 path=abc'), file('x')), 'bad_pax_record'],
    ['an empty pax path', archive(pax('8 path=\n'), file('x')), 'empty_path'],
    ['a pax link target with a NUL', archive(pax('16 linkpath=a\0b\n'), symlink('s', 'x')), 'nul_in_path'],
    ['an empty long name', archive(gnu('L', ''), file('x')), 'empty_path'],
    ['a long name with a NUL', archive(gnu('L', 'a\0b'), file('x')), 'nul_in_path'],
    ['an empty long link target', archive(gnu('K', ''), symlink('s', 'x')), 'link_target_empty'],
    ['two long names in a row', archive(gnu('L', 'a'), gnu('L', 'b'), file('x')), 'dangling_extension'],
    ['two long link targets in a row', archive(gnu('K', 'a'), gnu('K', 'b'), symlink('s', 'x')), 'dangling_extension'],
    ['a long link target in both dialects', archive(gnu('K', 'a'), pax('14 linkpath=b\n'), symlink('s', 'x')), 'mixed_dialects'],
    ['a name twice', archive(file('a'), file('a')), 'duplicate_path'],
    ['a name in two spellings', archive(file('a'), file('./a')), 'duplicate_path'],
    ['a folder twice', archive(folder('d'), folder('d')), 'duplicate_path'],
    ['a folder that becomes a link', archive(folder('d'), symlink('d', 'x')), 'type_changed'],
    ['a file below a link', archive(symlink('s', '/'), file('s/x')), 'path_under_non_directory'],
    ['a file below a file', archive(file('f'), file('f/x')), 'path_under_non_directory'],
    ['a parent component', archive(file('a/../b')), 'parent_component'],
    ['an absolute name', archive(file('/a')), 'absolute_path'],
    ['an empty name', archive(file('')), 'empty_path'],
    ['a file that ends in a slash', archive(file('a/')), 'file_path_is_folder'],
    ['a hard link to nothing', archive(hardLink('h', 'gone')), 'link_target_missing'],
    ['a hard link to a link', archive(symlink('s', 'x'), hardLink('h', 's')), 'link_target_missing'],
    ['a hard link to a folder', archive(folder('d'), hardLink('h', 'd')), 'link_target_missing'],
    ['a link without a target', archive(symlink('s', '')), 'link_target_empty'],
    ['a folder with content', archive(patched(folder('d'), { 124: bytes('00000001000\0') })), 'payload_on_non_file'],
    ['a sparse file', archive(patched(file('s'), { 156: bytes('S') })), 'unsupported_type'],
    ['a component of 256 bytes', archive(file('n'.repeat(256))), 'component_too_long'],
    ['a pax path twice', archive(pax('9 path=a\n9 path=b\n'), file('x')), 'bad_pax_record'],
    ['a pax record of length 0', archive(pax('0 path=a\n'), file('x')), 'bad_pax_record'],
    ['a pax record that is too long', archive(pax('99 path=a\n'), file('x')), 'bad_pax_record'],
    ['a pax path with a NUL', archive(pax('12 path=a\0b\n'), file('x')), 'nul_in_path'],
    ['a negative pax size', archive(pax('11 size=-5\n'), file('x')), 'bad_number'],
    ['two sizes', archive(pax('13 size=1024\n'), file('x')), 'size_disagreement'],
    ['a pax sparse name', archive(pax('22 GNU.sparse.name=ab\n'), file('x')), 'unsupported_extension'],
    ['a global path', archive(pax('9 path=a\n', 'g'), file('x')), 'unsupported_extension'],
    ['a pax header for nothing', archive(pax('9 path=a\n')), 'dangling_extension'],
    ['two pax headers in a row', archive(pax('9 path=a\n'), pax('9 path=b\n'), file('x')), 'dangling_extension'],
    ['a long name for nothing', archive(gnu('L', 'long')), 'dangling_extension'],
    ['both dialects', archive(pax('9 path=a\n'), gnu('L', 'long'), file('x')), 'mixed_dialects'],
  ])('refuses %s', (_name, bad, code) => {
    expect(codeOf(() => read(bad))).toBe(code);
    expect(codeOf(() => read(bad, {}, 1))).toBe(code);
  });

  it.each<[string, Uint8Array, string, string]>([
    ['`.git` at the top', file('.git/config', 'x'), '.git/config', 'git_metadata'],
    ['`.git` in a deep folder and another case', file('a/b/.GIT', 'x'), 'a/b/.GIT', 'git_metadata'],
    ['a symbolic `.gitmodules`', symlink('.gitmodules', 'x'), '.gitmodules', 'gitmodules_link'],
    ['a device', patched(file('dev'), { 156: bytes('3') }), 'dev', 'special_file'],
    ['a FIFO', patched(file('pipe'), { 156: bytes('6') }), 'pipe', 'special_file'],
    ['an unknown type with content', patched(file('odd', 'content'), { 156: bytes('Y') }), 'odd', 'unknown_type'],
  ])('drops %s, says so, and stays in step', (_name, dropped, path, reason) => {
    const events = read(archive(dropped, file('after', 'ok')));
    expect(events[0]).toEqual({ kind: 'skipped', path: new Uint8Array(bytes(path)), reason });
    expect(events.slice(1).map((event) => event.kind)).toEqual(['entry', 'data', 'entry-end', 'end']);
  });

  it('takes a hard link to an earlier file as a copy with the mode of that file', () => {
    const events = read(archive(file('a', 'same', { kind: 'executable' }), hardLink('b', './a')));
    expect(events).toContainEqual({
      kind: 'entry',
      entry: { verdict: 'keep', type: 'copy', path: bytes('b'), source: bytes('a'), size: 4, executable: true },
    });
  });

  it('applies GNU long names and long link targets', () => {
    const long = `d/${'n'.repeat(200)}`;
    const events = read(archive(gnu('L', long), gnu('K', 't'.repeat(300)), symlink('short', 'short')));
    expect(events[0]).toEqual({
      kind: 'entry',
      entry: { verdict: 'keep', type: 'link', path: bytes(long), target: bytes('t'.repeat(300)) },
    });
  });

  it.each<[keyof TreeLimits, number, Uint8Array, string]>([
    ['maxEntries', 3, archive(file('a'), file('b/c')), 'too_many_entries'],
    ['maxDepth', 3, archive(file('a/b/c')), 'too_deep'],
    ['maxNameBytes', 5, archive(file('abcde')), 'path_too_long'],
    ['maxNameBytes', 6, archive(symlink('s', '12345')), 'path_too_long'],
    ['maxEntries', 2, archive(pax('9 mode=a\n', 'g'), pax('9 mode=b\n', 'g')), 'too_many_entries'],
    ['maxNamesBytes', 6, archive(file('abc'), file('def')), 'names_too_large'],
    ['maxMetaBytes', 9, archive(pax('9 path=a\n'), file('x')), 'metadata_too_large'],
    ['maxFileBytes', 5, archive(file('a', '12345')), 'file_too_large'],
    ['maxTotalBytes', 10, archive(file('a', '12345'), hardLink('b', 'a')), 'tree_too_large'],
  ])('accepts exactly %s and refuses one less', (limit, value, tar, code) => {
    expect(codeOf(() => read(tar, { [limit]: value }))).toBe('accepted');
    expect(codeOf(() => read(tar, { [limit]: value - 1 }))).toBe(code);
  });

  it('accepts zeros after the end mark up to the bound', () => {
    expect(codeOf(() => read(Buffer.concat([archive(), new Uint8Array(MAX_TRAILING_BYTES)])))).toBe('accepted');
    expect(codeOf(() => read(Buffer.concat([archive(), new Uint8Array(MAX_TRAILING_BYTES + 1)])))).toBe('padding_too_large');
  });

  it('refuses an announced size before any of its bytes arrive', () => {
    const huge = patched(file('a'), { 124: bytes('77777777777\0') });
    expect(codeOf(() => new TarReader({ maxFileBytes: 1024 }).push(huge))).toBe('file_too_large');
  });

  it('stays refused after a refusal', () => {
    const reader = new TarReader();
    expect(codeOf(() => reader.push(file('/a')))).toBe('absolute_path');
    expect(codeOf(() => reader.push(archive(file('b'))))).toBe('truncated');
    expect(codeOf(() => reader.finish())).toBe('truncated');
  });

  it('lists named folders that hold nothing', () => {
    const reader = new TarReader();
    reader.push(archive(folder('empty'), folder('full'), file('full/x')));
    expect(reader.emptyDirectories().map((path) => Buffer.from(path).toString())).toEqual(['empty']);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  documentName,
  EMPTY_MARKER_NAME,
  emptyMarker,
  isInside,
  keepFiles,
  MAX_DOWNLOAD_NAME,
  type ManifestEntry,
  mimeTypeOf,
  safeDownloadName,
} from '../../src/index.ts';
import { sha256Hex } from '../arbitraries.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const file = (path: string, content = '', kind: ManifestEntry['kind'] = 'file'): ManifestEntry => ({
  path: bytes(path),
  kind,
  size: content.length,
  sha256: kind === 'directory' ? '' : sha256Hex(bytes(content)),
});

describe('keepFiles', () => {
  it('keeps new and changed files, nested too, and names the rule for every other path', () => {
    const tree = [
      file('.env'),
      file('CLAUDE.md', 'placed'),
      file('a/deep/notes.md', 'new'),
      file('docs/.git/config'),
      file('docs/node_modules/x.js'),
      file('empty', '', 'directory'),
      file('link', 'x', 'link'),
      file('old.md', 'before'),
      file('report.md', 'after'),
      file('sub/CLAUDE.md', 'placed'),
    ];
    const result = keepFiles(
      tree,
      [file('old.md', 'before'), file('report.md', 'before')],
      [{ path: bytes('CLAUDE.md'), sha256: sha256Hex(bytes('placed')) }],
    );
    expect(result.kept.map(({ path }) => Buffer.from(path).toString())).toEqual(['a/deep/notes.md', 'report.md', 'sub/CLAUDE.md']);
    expect(result.leftOut.map(({ path, rule }) => [Buffer.from(path).toString(), rule])).toEqual([
      ['.env', 'dot_file'],
      ['CLAUDE.md', 'scaffolding'],
      ['docs/.git/config', 'excluded_folder'],
      ['docs/node_modules/x.js', 'excluded_folder'],
      ['empty', 'not_a_file'],
      ['link', 'not_a_file'],
      ['old.md', 'unchanged'],
    ]);
  });

  it('keeps a scaffolding file that the agent changed', () => {
    expect(keepFiles([file('CLAUDE.md', 'mine')], [], [{ path: bytes('CLAUDE.md'), sha256: sha256Hex(bytes('placed')) }]).isEmpty).toBe(
      false,
    );
  });

  it('says that nothing was left, with a marker that names the way out', () => {
    expect(keepFiles([file('.hidden'), file('.claude/settings.json'), file('a/.cache/x')], [], []).isEmpty).toBe(true);
    expect(EMPTY_MARKER_NAME).toBe('NO-OUTPUT.md');
    expect(emptyMarker('p1')).toContain('allowEmpty: true');
  });
});

describe('safeDownloadName', () => {
  it.each([
    ['docs/report.md', 'report.md'],
    ['../../etc/passwd', 'passwd'],
    ['a\\b\\c.txt', 'c.txt'],
    ['..', 'artifact'],
    ['', 'artifact'],
    ['.env', 'env'],
    ['a"b\r\nSet-Cookie: x.txt', 'a_b_Set-Cookie_ x.txt'],
    ['invoice\u202efdp.exe', 'invoice_fdp.exe'],
    ['CON.txt', '_CON.txt'],
    ['résumé.pdf', 'résumé.pdf'],
  ])('turns %j into %j', (path, name) => {
    expect(safeDownloadName(path)).toBe(name);
  });

  it('keeps the extension at the bound', () => {
    const name = safeDownloadName(`${'n'.repeat(200)}.json`);
    expect(name.length).toBe(MAX_DOWNLOAD_NAME);
    expect(name.endsWith('.json')).toBe(true);
  });

  it('holds no separator, quote or control for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (path) => {
        const name = safeDownloadName(path);
        expect(name).toMatch(/^[^\u0000-\u001f\u007f"\\/:;%]+$/u);
        expect(name.startsWith('.')).toBe(false);
        expect([...name].length).toBeLessThanOrEqual(MAX_DOWNLOAD_NAME + 1);
      }),
    );
  });
});

describe('mimeTypeOf', () => {
  it.each([
    ['a.md', 'text/markdown', false],
    ['a.MARKDOWN', 'text/markdown', false],
    ['a.json', 'application/json', false],
    ['a.csv', 'text/csv', false],
    ['a.html', 'text/html', true],
    ['a.svg', 'image/svg+xml', true],
    ['a.png', 'image/png', false],
    ['a', 'application/octet-stream', true],
    ['a.constructor', 'application/octet-stream', true],
  ])('labels %s as %s', (name, mimeType, mustDownload) => {
    expect(mimeTypeOf(name)).toEqual({ mimeType, mustDownload });
  });
});

describe('isInside', () => {
  it.each([
    ['/root', '/root/a', true],
    ['/', '/a', true],
    ['/root', '/root', false],
    ['/root', '/root-evil/a', false],
    ['/root', '/root/../etc/passwd', false],
    ['/root', '/root/a/../../etc', false],
    ['/root', 'root/a', false],
    ['/root/../x', '/root/../x/a', false],
    ['/root', '/root//a', false],
    ['/root', '/root/a\0', false],
  ])('root %s, path %s: %s', (root, path, inside) => {
    expect(isInside(root, path)).toBe(inside);
  });
});

describe('documentName', () => {
  it('never gives a name twice, nor one of the platform', () => {
    const taken = new Set(['record.json']);
    const names = ['a.md', 'files/record.json', 'record.json', 'r\xff', 'r\xfe'].map((name) =>
      documentName(Buffer.from(name, 'latin1'), taken),
    );
    expect(names).toEqual(['a.md', 'files/record.json', 'files/files/record.json', 'r\\xff', 'r\\xfe']);
    expect(documentName(bytes('r\\xff'), taken)).toBe('files/r\\xff');
  });
});

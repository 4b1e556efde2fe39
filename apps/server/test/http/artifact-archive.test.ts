import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { type ArchiveFile, artifactArchive } from '../../src/http/artifact-archive.ts';

const file = (path: string, content: string, bytes = content.length): ArchiveFile => ({
  path,
  bytes,
  at: new Date(1_000_000_000_000),
  open: async () => Readable.from([Buffer.from(content)]),
});

describe('the archive of all outputs', () => {
  it('holds each file with its folders, whatever its name and size', async () => {
    const files = [
      file('phase-1/a', 'one'),
      file(`phase-1/${'ü'.repeat(120)}.md`, 'two'),
      file('empty', ''),
      file('big', 'x'.repeat(300_000)),
    ];
    const seen: [string, string][] = [];
    const reader = extract();
    reader.on('entry', (header, stream, next) => {
      void buffer(Readable.from(stream)).then((content) => {
        seen.push([header.name, content.toString()]);
        next();
      });
    });
    await pipeline(artifactArchive(files), reader);
    expect(seen.map(([name, content]) => [name, content.length])).toEqual(files.map(({ path, bytes }) => [path, bytes]));
  });

  it.each([
    ['cannot be opened', { ...file('b', 'x'), open: async () => Promise.reject(new Error('the blob is gone')) }],
    ['is shorter than it was stored', file('b', 'x', 5)],
    ['is longer than it was stored', file('b', 'xyz', 1)],
  ])('breaks off when a file %s, and never looks whole', async (_what, bad) => {
    await expect(buffer(artifactArchive([file('a', 'one'), bad, file('c', 'three')]))).rejects.toThrow();
  });

  it('opens one file after the other', async () => {
    let open = 0;
    let most = 0;
    const files = Array.from(
      { length: 5 },
      (_, index): ArchiveFile => ({
        ...file(`f${index}`, 'x'),
        open: async () => {
          open += 1;
          most = Math.max(most, open);
          return Readable.from([Buffer.from('x')]).once('close', () => {
            open -= 1;
          });
        },
      }),
    );
    await buffer(artifactArchive(files));
    expect(most).toBe(1);
  });
});

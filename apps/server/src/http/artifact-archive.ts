import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';

/** One file of an archive. */
export interface ArchiveFile {
  readonly path: string;
  readonly bytes: number;
  readonly at: Date;
  /** Opened when its turn comes, so that a long archive holds one file open. */
  open(): Promise<Readable>;
}

/** A tar of files, made while it is read. What cannot be opened or read breaks the stream off, so that a short archive never looks whole. */
export function artifactArchive(files: readonly ArchiveFile[]): Readable {
  const tar = pack();
  const write = async (): Promise<void> => {
    for (const file of files) {
      const content = await file.open();
      await pipeline(content, tar.entry({ name: file.path, size: file.bytes, mtime: file.at, mode: 0o644 }));
    }
    tar.finalize();
  };
  write().catch((error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))));
  return Readable.from(tar, { objectMode: false });
}

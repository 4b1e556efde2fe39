import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import type { FileToPut } from '@firecrew/harness';
import { type PutOptions, putTree, type Vm } from '@firecrew/vmm';
import type { AttemptContext } from './attempt-context.ts';

/** Time to wait for the link of a VM that is up. */
export const SESSION_TIMEOUT_MS = 30_000;

/** The file of an input blob. */
export function inputFile(context: AttemptContext, digest: string): string {
  return join(context.paths.inputs, digest);
}

/** Sends a stored tree (zstd tar, made and checked on this host) to a folder of the guest; `onto` as of `putTree`. */
export async function sendBlob(vm: Vm, path: string, file: string, onto?: NonNullable<PutOptions['onto']>): ReturnType<typeof putTree> {
  const tar = createReadStream(file);
  const plain = createZstdDecompress();
  tar.once('error', (error) => plain.destroy(error));
  return await putTree(await vm.session(SESSION_TIMEOUT_MS), path, tar.pipe(plain), onto === undefined ? {} : { onto });
}

/** Places the harness's files: each folder arrives as a whole, read-only. */
export async function sendFiles(vm: Vm, folders: readonly string[], files: readonly FileToPut[]): Promise<void> {
  for (const folder of folders) {
    const own = files.filter((file) => posix.dirname(file.path) === folder);
    const parts: Uint8Array[] = [];
    for (const file of own.sort((a, b) => (a.path < b.path ? -1 : 1))) {
      const content = file.source.kind === 'text' ? Buffer.from(file.source.text) : await readFile(file.source.path);
      const kind = (file.mode & 0o111) === 0 ? 'file' : 'executable';
      parts.push(
        writeTarHeader({ path: Buffer.from(posix.basename(file.path)), kind, size: content.length }),
        content,
        tarPadding(content.length),
      );
    }
    await putTree(await vm.session(SESSION_TIMEOUT_MS), folder, Readable.from([Buffer.concat([...parts, tarEnd()])]), { readOnly: true });
  }
}

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { WorkspaceId } from '@firecrew/base';
import type { BlobStore, BlobVerdict, ListedBlob, OpenBlob, PutOptions, PutResult } from '../blobs/blob-store.ts';
import { checkDigest, checkWorkspace, digestMismatch, notFound, resolveRange, tooLarge } from '../blobs/check-names.ts';

interface Entry {
  readonly content: Buffer;
  readonly storedAtMs: number;
}

/** A blob store in memory with the behaviour of the real ones; `nowMs` dates its blobs. */
export function memoryBlobStore(nowMs: () => number = Date.now, storeId = 'memory-store'): BlobStore {
  const entries = new Map<string, Map<string, Entry>>();
  const find = (workspace: string, digest: string): Entry | undefined => {
    checkDigest(digest);
    return entries.get(checkWorkspace(workspace))?.get(digest);
  };
  return {
    storeId,
    async put(workspace: WorkspaceId, source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PutResult> {
      checkWorkspace(workspace);
      if (options.expectDigest !== undefined) checkDigest(options.expectDigest);
      const content = await collect(source, options.maxBytes);
      if (content === undefined) throw tooLarge(workspace, options.maxBytes);
      const digest = sha256(content);
      if (options.expectDigest !== undefined && options.expectDigest !== digest)
        throw digestMismatch(workspace, options.expectDigest, digest);
      const inWorkspace = entries.get(workspace) ?? new Map<string, Entry>();
      entries.set(workspace, inWorkspace);
      const existed = inWorkspace.has(digest);
      inWorkspace.set(digest, { content, storedAtMs: nowMs() });
      return { digest, bytes: content.length, existed };
    },
    async open(workspace, digest, range): Promise<OpenBlob> {
      const entry = find(workspace, digest);
      if (entry === undefined) throw notFound(workspace, digest);
      const [start, end] = resolveRange(range, entry.content.length, digest);
      return { size: entry.content.length, stream: Readable.from(start === end ? [] : [entry.content.subarray(start, end)]) };
    },
    has: async (workspace, digest) => find(workspace, digest) !== undefined,
    async verify(workspace, digest): Promise<BlobVerdict> {
      return find(workspace, digest) === undefined ? 'missing' : 'intact';
    },
    async delete(workspace, digest) {
      return find(workspace, digest) !== undefined && entries.get(workspace)?.delete(digest) === true;
    },
    async *list(workspace): AsyncGenerator<ListedBlob> {
      const inWorkspace = [...(entries.get(checkWorkspace(workspace)) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
      for (const [digest, { content, storedAtMs }] of inWorkspace) yield { digest, bytes: content.length, storedAtMs };
    },
  };
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

async function collect(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return undefined;
    chunks.push(Uint8Array.from(chunk));
  }
  return Buffer.concat(chunks);
}

import { Readable } from 'node:stream';
import { byteKey, documentName, EMPTY_MARKER_NAME, emptyMarker, keepFiles, mimeTypeOf } from '@firecrew/artifact-capture';
import { newId } from '@firecrew/base';
import type { MissionRow, tables } from '@firecrew/store';
import { readBlobEntries, readManifestOfBlob } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';
import { type InputTree, workspaceIdOf } from '../driver/mission-facts.ts';
import { RECORD_NAME } from './artifacts.ts';

type ArtifactRow = typeof tables.artifacts.$inferInsert;

/** Files of one phase that become documents; more are named as left out. */
export const MAX_DOCUMENTS = 1000;
/** Bytes of one document. */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024 * 1024;

/** What a phase without a repository left: rows of its documents, whether there was anything, and what was not kept. */
export interface StoredDocuments {
  readonly rows: readonly ArtifactRow[];
  readonly isEmpty: boolean;
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
}

/** Stores the files that are new or changed since the phase began, as they are; a phase that left none gets a marker that says so. */
export async function storeDocuments(
  context: ServerContext,
  row: MissionRow,
  place: { readonly missionId: string; readonly phaseId: string; readonly turnId: string; readonly attempt: number },
  trees: { readonly before: InputTree; readonly after: InputTree },
): Promise<StoredDocuments> {
  const workspaceId = workspaceIdOf(row.workspaceId);
  return await context.repositories.withScratch(async (scratch) => {
    const read = async (name: string, tree: InputTree) => {
      const file = await context.repositories.blobToFile(workspaceId, tree.blobDigest, scratch(name));
      return { file, ...(await readManifestOfBlob(file, { blobDigest: tree.blobDigest, snapshotId: tree.snapshotId })) };
    };
    const before = await read('before.blob', trees.before);
    const after = await read('after.blob', trees.after);
    // Scaffolding is named by path and content; the manifest of a backend names paths, so it is what was placed there before the phase.
    const backend = context.policy.backends.find(({ name }) => name === row.spec.agent.backend);
    const placed = new Set((backend?.scaffolding ?? []).map((path) => byteKey(Buffer.from(path))));
    const scaffolding = before.entries.filter((entry) => placed.has(byteKey(entry.path)));
    const { kept, leftOut, isEmpty } = keepFiles(after.entries, before.entries, scaffolding);
    const wanted = new Set(kept.slice(0, MAX_DOCUMENTS).map((entry) => byteKey(entry.path)));
    const rows: ArtifactRow[] = [];
    const store = async (name: string, content: AsyncIterable<Uint8Array>) => {
      const stored = await context.blobs.put(workspaceId, content, { maxBytes: MAX_DOCUMENT_BYTES });
      const mime = mimeTypeOf(name).mimeType;
      rows.push({
        id: newId('artifact'),
        ...place,
        name,
        kind: 'document',
        mime,
        bytes: stored.bytes,
        digest: stored.digest,
        truncated: false,
      });
    };
    // A path that an agent chose never takes the place of what the platform says.
    const taken = new Set([RECORD_NAME, EMPTY_MARKER_NAME]);
    for await (const entry of readBlobEntries(after.file)) {
      if (wanted.has(byteKey(entry.path))) await store(documentName(entry.path, taken), entry.content);
    }
    if (isEmpty) await store(EMPTY_MARKER_NAME, Readable.from([Buffer.from(emptyMarker(place.phaseId))]));
    const beyond = kept.slice(MAX_DOCUMENTS).map((entry) => ({ path: entry.path, rule: 'too_many' }));
    return {
      rows,
      isEmpty,
      leftOut: [...leftOut, ...beyond].map(({ path, rule }) => ({ path: Buffer.from(path).toString('utf8'), reason: rule })),
    };
  });
}

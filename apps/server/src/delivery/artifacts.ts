import { Readable } from 'node:stream';
import { newId, type WorkspaceId } from '@firecrew/base';
import type { tables } from '@firecrew/store';
import type { ServerContext } from '../context.ts';

/** Whose output an artifact is. */
export interface ArtifactPlace {
  readonly missionId: string;
  readonly phaseId: string;
  readonly turnId: string;
  readonly attempt: number;
}

export type ArtifactRow = typeof tables.artifacts.$inferInsert;

/** An output that is to be kept. */
export interface NewArtifact {
  readonly name: string;
  readonly kind: ArtifactRow['kind'];
  readonly mime: string;
  readonly bytes: Buffer;
  readonly truncated: boolean;
}

/** Name of the artifact that says what was done, by whom and how. */
export const RECORD_NAME = 'record.json';

/** Bytes of one artifact that is held in memory while it is stored. */
const MAX_ARTIFACT_BYTES = 64 * 1024 * 1024;

/** Stores the contents and gives the rows that name them; the caller writes those in its transaction. */
export async function storeArtifacts(
  context: ServerContext,
  workspaceId: WorkspaceId,
  place: ArtifactPlace,
  artifacts: readonly NewArtifact[],
): Promise<ArtifactRow[]> {
  const rows: ArtifactRow[] = [];
  for (const { bytes, ...artifact } of artifacts) {
    const stored = await context.blobs.put(workspaceId, Readable.from([bytes]), { maxBytes: MAX_ARTIFACT_BYTES });
    rows.push({ id: newId('artifact'), ...place, ...artifact, bytes: stored.bytes, digest: stored.digest });
  }
  return rows;
}

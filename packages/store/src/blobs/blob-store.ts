import type { Readable } from 'node:stream';
import type { WorkspaceId } from '@firecrew/base';

/** Part of a blob: `length` bytes from byte `offset`; without `length` up to the end. */
export interface BlobRange {
  readonly offset: number;
  readonly length?: number;
}

/** What `put` needs to know beside the bytes. */
export interface PutOptions {
  /** Refuse content with another SHA-256 (64 lower-case hexadecimal digits). */
  readonly expectDigest?: string;
  /** Refuse more bytes than this; nothing beyond it is kept. */
  readonly maxBytes: number;
}

/** A stored blob. `existed`: the same content was there before, so another reference may hold it too. */
export interface PutResult {
  readonly digest: string;
  readonly bytes: number;
  readonly existed: boolean;
}

/** An open blob: `size` of the whole in bytes, and the stream of the part that was asked for. */
export interface OpenBlob {
  readonly size: number;
  readonly stream: Readable;
}

/** One line of a listing. `storedAtMs` is renewed when the same content is put again, so that a cleaner's grace window begins anew. */
export interface ListedBlob {
  readonly digest: string;
  readonly bytes: number;
  readonly storedAtMs: number;
}

/** What a look at the stored bytes found. */
export type BlobVerdict = 'intact' | 'missing' | 'damaged';

/**
 * A store of immutable contents by SHA-256, apart for each workspace. Every method throws `blob_workspace_invalid` or
 * `blob_digest_invalid` for an id of another form, and `blob_store_unavailable` when the store itself cannot be seen:
 * that is never reported as a missing blob.
 */
export interface BlobStore {
  /** The id given when the store was made; it tells an empty store from a folder that is not mounted. */
  readonly storeId: string;
  /** Stores a stream as a whole or not at all. Throws `blob_too_large` or `blob_digest_mismatch`. */
  put(workspace: WorkspaceId, source: AsyncIterable<Uint8Array>, options: PutOptions): Promise<PutResult>;
  /** Throws `blob_not_found`, or `blob_range_invalid` for a part outside the blob. */
  open(workspace: WorkspaceId, digest: string, range?: BlobRange): Promise<OpenBlob>;
  has(workspace: WorkspaceId, digest: string): Promise<boolean>;
  /** Reads the whole blob and compares its digest with its name. */
  verify(workspace: WorkspaceId, digest: string): Promise<BlobVerdict>;
  /** False when there was none. */
  delete(workspace: WorkspaceId, digest: string): Promise<boolean>;
  list(workspace: WorkspaceId): AsyncIterable<ListedBlob>;
}

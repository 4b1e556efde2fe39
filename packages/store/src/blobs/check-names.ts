import { CodedError, parseId } from '@firecrew/base';
import type { BlobRange } from './blob-store.ts';

/** Refuses a workspace id that is not one: `blob_workspace_invalid`. No path is made of anything else. */
export function checkWorkspace(workspace: string): string {
  if (parseId('workspace', workspace) === undefined) {
    throw new CodedError('blob_workspace_invalid', `${JSON.stringify(workspace.slice(0, 64))} is no workspace id`);
  }
  return workspace;
}

/** Whether a text has the form of a SHA-256 in lower-case hexadecimal. */
export function isDigest(digest: string): boolean {
  return digest.length === 64 && /^[0-9a-f]+$/.test(digest);
}

/** Refuses a digest that is not 64 lower-case hexadecimal digits: `blob_digest_invalid`. */
export function checkDigest(digest: string): string {
  if (!isDigest(digest)) throw new CodedError('blob_digest_invalid', `${JSON.stringify(digest.slice(0, 80))} is no SHA-256`);
  return digest;
}

/** The first byte and the byte after the last one of a part, or `blob_range_invalid`. An empty part is allowed. */
export function resolveRange(range: BlobRange | undefined, size: number, digest: string): readonly [number, number] {
  const offset = range?.offset ?? 0;
  const end = range?.length === undefined ? size : offset + range.length;
  const valid = Number.isSafeInteger(offset) && Number.isSafeInteger(end) && offset >= 0 && end >= offset && end <= size;
  if (!valid) {
    throw new CodedError('blob_range_invalid', `bytes ${offset} to ${end} are not in blob ${digest} of ${size} bytes`, { id: digest });
  }
  return [offset, end];
}

/** The error for content past its limit. */
export function tooLarge(workspace: string, maxBytes: number): CodedError {
  return new CodedError('blob_too_large', `a blob for ${workspace} is larger than ${maxBytes} bytes`, { id: workspace });
}

/** The error for content other than announced. */
export function digestMismatch(workspace: string, expected: string, actual: string): CodedError {
  return new CodedError('blob_digest_mismatch', `a blob for ${workspace} was announced as ${expected} and is ${actual}`, {
    id: workspace,
    action: 'Send it again.',
  });
}

/** The error for a blob that is not there. */
export function notFound(workspace: string, digest: string): CodedError {
  return new CodedError('blob_not_found', `workspace ${workspace} has no blob ${digest}`, { id: digest });
}

import { CodedError, messageOf } from '@firecrew/base';

/** A file of an artifact is not what its manifest says, or the manifest not what its id says. */
export function wrongDigest(id: string, what: string): CodedError {
  return new CodedError('image_digest_wrong', `${what} of ${id} is not what its digest says`, {
    id,
    action: 'Remove it with firecrew image remove, and build or import it again.',
  });
}

/** No artifact of that id, name or ending. */
export function unknownArtifact(wanted: string): CodedError {
  return new CodedError('image_unknown', `the store holds nothing called ${JSON.stringify(wanted)}`, {
    id: wanted,
    action: 'List what it holds with firecrew image list.',
  });
}

/** The disk or the rights of the store's folder. */
export function storeFailed(what: string, id: string, cause: unknown): CodedError {
  return new CodedError('image_store_failed', `${what}: ${messageOf(cause)}`, {
    id,
    action: 'Check the room and the rights on the disk of the image store.',
    cause,
  });
}

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['md', 'text/markdown'],
  ['markdown', 'text/markdown'],
  ['json', 'application/json'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['htm', 'text/html'],
  ['txt', 'text/plain'],
  ['log', 'text/plain'],
  ['patch', 'text/x-diff'],
  ['diff', 'text/x-diff'],
  ['svg', 'image/svg+xml'],
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['gif', 'image/gif'],
  ['webp', 'image/webp'],
  ['pdf', 'application/pdf'],
  ['zip', 'application/zip'],
  ['gz', 'application/gzip'],
  ['tar', 'application/x-tar'],
  ['zst', 'application/zstd'],
]);

const ACTIVE: readonly string[] = ['text/html', 'image/svg+xml'];

/** How an artifact is labelled and shown. */
export interface ArtifactMime {
  readonly mimeType: string;
  /** True when a browser could run something in it: it is offered as a download, never shown in place. */
  readonly mustDownload: boolean;
}

/** The MIME type of a file by its extension; `application/octet-stream` when it is unknown. */
export function mimeTypeOf(name: string): ArtifactMime {
  const extension = /\.([^./\\]{1,16})$/.exec(name)?.[1]?.toLowerCase() ?? '';
  const mimeType = BY_EXTENSION.get(extension) ?? 'application/octet-stream';
  return { mimeType, mustDownload: ACTIVE.includes(mimeType) || mimeType === 'application/octet-stream' };
}

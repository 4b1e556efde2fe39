/** Characters of a download name. */
export const MAX_DOWNLOAD_NAME = 120;

const FALLBACK = 'artifact';
// Separators, quotes, controls, direction marks and what a shell or another file system gives a meaning to.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd"'`\\/:*?<>|;%]+/gu;
const RESERVED = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i;

/**
 * A file name that is safe in a `Content-Disposition` header and on any disk: the last component, at most
 * {@link MAX_DOWNLOAD_NAME} characters with the extension kept, never hidden, reserved or empty.
 */
export function safeDownloadName(path: string | Uint8Array): string {
  const text = typeof path === 'string' ? path : new TextDecoder('utf-8', { ignoreBOM: true }).decode(path);
  const last = text.split(/[/\\]/).findLast((part) => part !== '') ?? '';
  const cleaned = last
    .toWellFormed()
    .replace(UNSAFE, '_')
    .replace(/^[.\s_-]+/u, '')
    .replace(/[.\s]+$/u, '');
  const named = cleaned === '' ? FALLBACK : RESERVED.test(cleaned) ? `_${cleaned}` : cleaned;
  return shorten(named);
}

function shorten(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_DOWNLOAD_NAME) return name;
  const extension = [...(/\.[^.]{1,16}$/u.exec(name)?.[0] ?? '')];
  return [...characters.slice(0, MAX_DOWNLOAD_NAME - extension.length), ...extension].join('');
}

/** Longest text of git in an error, in characters; both ends are kept, since the cause tends to stand last. */
export const GIT_TEXT_MAX_CHARS = 2000;

const MARK = '***';

/** `text` without user parts of URLs, credential headers, the given secrets and control characters. */
export function redactGitText(text: string, secrets: readonly string[] = []): string {
  let clean = text;
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, MARK);
  return clean
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, `$1${MARK}@`)
    .replace(/((?:proxy-)?authorization\s*:\s*)[^\r\n]*/gi, `$1${MARK}`)
    .replace(/((?:password|token|secret)\s*[=:]\s*)\S+/gi, `$1${MARK}`)
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' ')
    .trim();
}

/** The first and the last part of a text that is longer than `max` characters. */
export function clampBothEnds(text: string, max: number = GIT_TEXT_MAX_CHARS): string {
  if (text.length <= max) return text;
  const half = Math.floor((max - 5) / 2);
  return `${text.slice(0, half)}\n...\n${text.slice(text.length - half)}`;
}

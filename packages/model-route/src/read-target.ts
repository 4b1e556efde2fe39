/** A request target in its one spelling. */
export interface Target {
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
}

/** Longest target, in characters. */
export const TARGET_MAX_CHARACTERS = 4_096;

const PATH = /^\/[A-Za-z0-9._~:@!$&'()*+,=/-]*$/;
const QUERY_PART = /^([A-Za-z0-9._$-]{1,64})(?:=([A-Za-z0-9._~:@!$'()*,/%-]{0,1024}))?$/;

/**
 * Reads a target in origin form, or gives undefined. It refuses every spelling that two readers could read apart: absolute form, `//`,
 * `.` and `..`, anything encoded in a path, backslashes, parameters, fragments.
 */
export function readTarget(text: string): Target | undefined {
  if (text.length > TARGET_MAX_CHARACTERS) return undefined;
  const mark = text.indexOf('?');
  const path = mark < 0 ? text : text.slice(0, mark);
  if (!PATH.test(path) || path.includes('//')) return undefined;
  if (path.split('/').some((part) => part === '.' || part === '..')) return undefined;
  if (mark < 0 || mark === text.length - 1) return { path, query: [] };
  const query: [string, string][] = [];
  for (const part of text.slice(mark + 1).split('&')) {
    const match = QUERY_PART.exec(part);
    if (match === null) return undefined;
    query.push([match[1] ?? '', match[2] ?? '']);
  }
  return { path, query };
}

/** The target as it goes up, without the names of `dropped`. */
export function writeTarget({ path, query }: Target, dropped: readonly string[]): string {
  const kept = query.filter(([name]) => !dropped.includes(name));
  return kept.length === 0 ? path : `${path}?${kept.map(([name, value]) => `${name}=${value}`).join('&')}`;
}

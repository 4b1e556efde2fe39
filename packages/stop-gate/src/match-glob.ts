import { MAX_PROTECTED_GLOBS } from './limits.ts';
import { StopGateError } from './reasons.ts';

/** A parsed glob: path parts, each a literal, a pattern with `*` and `?`, or `**`. */
export interface Glob {
  readonly source: string;
  readonly parts: readonly string[];
}

/**
 * Parses one glob. `*` and `?` stay within a path part, `**` as a whole part spans any number of them; a glob without a slash
 * matches at any depth, a leading slash binds it to the root; a match covers everything below it.
 * Throws `glob_invalid` for an empty one, `.` and `..` parts, NUL, backslash, `!` in front, and the braces and brackets that other dialects
 * give a meaning: a rule that is not understood must not look as if it protected something.
 */
export function parseGlob(source: string): Glob {
  const bad = (why: string): StopGateError => new StopGateError('glob_invalid', `the glob ${JSON.stringify(source)} ${why}`);
  if (/[\0\\{}[\]]/.test(source)) throw bad('uses a character without a meaning here: only *, ? and ** are patterns');
  if (source.startsWith('!')) throw bad('is negated; list what is protected instead');
  const anchored = source.startsWith('/');
  const parts = source.split('/').filter((part, at, all) => !(part === '' && (at === 0 || at === all.length - 1)));
  if (parts.length === 0) throw bad('is empty');
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..') throw bad('has an empty, "." or ".." part');
    if (part !== '**' && part.includes('**')) throw bad('has "**" inside a path part');
  }
  return { source, parts: anchored || parts.length > 1 ? parts : ['**', ...parts] };
}

/** Parses the globs of `gate.protect`, at most {@link MAX_PROTECTED_GLOBS}; errors as {@link parseGlob}. */
export function parseGlobs(sources: readonly string[]): readonly Glob[] {
  if (sources.length > MAX_PROTECTED_GLOBS) {
    throw new StopGateError('glob_invalid', `${sources.length} globs are given; the limit is ${MAX_PROTECTED_GLOBS}`);
  }
  return sources.map(parseGlob);
}

/** True where `path` (relative, `/` between parts) or a folder above it matches. Costs at most parts of the glob times parts of the path. */
export function matchesGlob(glob: Glob, path: string): boolean {
  let live = new Set<number>(closure(glob, 0));
  for (const part of path.split('/')) {
    const next = new Set<number>();
    for (const at of live) {
      const pattern = glob.parts[at];
      if (pattern === '**') for (const state of closure(glob, at)) next.add(state);
      else if (pattern !== undefined && matchesPart(pattern, part)) for (const state of closure(glob, at + 1)) next.add(state);
    }
    if (next.has(glob.parts.length)) return true;
    live = next;
  }
  return false;
}

/** The states reachable from `at` without consuming a part: `**` may stand for nothing. */
function closure(glob: Glob, at: number): number[] {
  const states = [at];
  let state = at;
  while (glob.parts[state] === '**') {
    state += 1;
    states.push(state);
  }
  return states;
}

function matchesPart(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let mark = 0;
  while (t < text.length) {
    const wanted = pattern[p];
    if (wanted === '*') {
      star = p;
      mark = t;
      p += 1;
    } else if (wanted !== undefined && (wanted === '?' || wanted === text[t])) {
      p += 1;
      t += 1;
    } else if (star >= 0) {
      mark += 1;
      t = mark;
      p = star + 1;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

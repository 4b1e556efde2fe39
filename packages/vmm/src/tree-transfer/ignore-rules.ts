/** One `.gitignore` of the base: `dir` relative to the root (characters are bytes), empty for the root. */
export interface IgnoreFile {
  readonly dir: string;
  readonly text: string;
}

/** Ignore files and lines that are looked at; later ones are not. */
export const MAX_IGNORE_FILES = 2000;
export const MAX_IGNORE_LINES = 5000;
const MAX_PATTERN_CHARACTERS = 1000;

interface Rule {
  readonly isNegated: boolean;
  readonly foldersOnly: boolean;
  readonly parts: readonly Part[];
}

/** One part of a pattern between slashes: any number of parts, or what each character of a name must be. */
type Part = 'any_parts' | readonly Token[];
type Token = 'star' | ((character: string) => boolean);

/**
 * Decides by the base's ignore rules whether a path is ignored: the last rule that matches wins, deeper files win over those
 * above, and what lies in an ignored folder is ignored. Paths are byte paths as `latin1`. A rule that is not understood never makes a
 * path ignored. One path costs at most its length times that of the rules: names and rules may be made to be slow to match.
 */
export function ignoredPaths(files: readonly IgnoreFile[]): (path: string, isFolder: boolean) => boolean {
  const rules = new Map<string, Rule[]>();
  for (const file of files.slice(0, MAX_IGNORE_FILES)) rules.set(file.dir, [...(rules.get(file.dir) ?? []), ...parseRules(file.text)]);
  // Most paths share their folders, and each folder is asked for once.
  const folders = new Map<string, boolean>([['', false]]);
  const isIgnoredFolder = (folder: string): boolean => {
    const known = folders.get(folder) ?? (isIgnoredFolder(parentOf(folder)) || isIgnoredItself(rules, folder.split('/'), true));
    folders.set(folder, known);
    return known;
  };
  return (path, isFolder) =>
    isFolder ? isIgnoredFolder(path) : isIgnoredFolder(parentOf(path)) || isIgnoredItself(rules, path.split('/'), false);
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function isIgnoredItself(rules: ReadonlyMap<string, readonly Rule[]>, parts: readonly string[], isFolder: boolean): boolean {
  for (let depth = parts.length - 1; depth >= 0; depth -= 1) {
    const below = parts.slice(depth);
    const found = rules.get(parts.slice(0, depth).join('/')) ?? [];
    const rule = found.findLast((one) => (isFolder || !one.foldersOnly) && matchesParts(one.parts, below));
    if (rule !== undefined) return !rule.isNegated;
  }
  return false;
}

function parseRules(text: string): Rule[] {
  // Patterns meet paths of bytes, so they are bytes too.
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  return bytes
    .split('\n')
    .slice(0, MAX_IGNORE_LINES)
    .flatMap((line) => parseRule(line.replace(/\r$/, '')));
}

function parseRule(line: string): Rule[] {
  let pattern = line.replace(/(?<!\\) +$/, '');
  if (pattern === '' || pattern.startsWith('#')) return [];
  const isNegated = pattern.startsWith('!');
  if (isNegated) pattern = pattern.slice(1);
  const foldersOnly = pattern.endsWith('/');
  pattern = pattern.replace(/\/+$/, '');
  if (pattern === '') return [];
  const isAnchored = pattern.includes('/');
  const names = pattern.replace(/^\//, '').split('/');
  const parts = names.map((name): Part | undefined => (isAnchored && name === '**' ? 'any_parts' : parsePart(name)));
  const understood = parts.filter((part) => part !== undefined);
  if (pattern.length > MAX_PATTERN_CHARACTERS || understood.length < parts.length)
    return isNegated ? [{ isNegated, foldersOnly: false, parts: ['any_parts'] }] : [];
  return [{ isNegated, foldersOnly, parts: isAnchored ? understood : ['any_parts', ...understood] }];
}

/** The pattern of one name; undefined for one that git could not match either, or that is not understood. */
function parsePart(name: string): Token[] | undefined {
  const tokens: Token[] = [];
  for (let at = 0; at < name.length; at += 1) {
    const character = name.charAt(at);
    if (character === '*') {
      if (tokens.at(-1) !== 'star') tokens.push('star');
    } else if (character === '?') tokens.push(() => true);
    else if (character === '[') {
      const set = /^\[([!^]?)(\]?[^\]]*)\]/.exec(name.slice(at));
      const members = membersOf(set?.[2] ?? '');
      if (set === null || members === undefined) return undefined;
      tokens.push((found) => members(found) === (set[1] === ''));
      at += set[0].length - 1;
    } else {
      if (character === '\\') at += 1;
      const wanted = name.charAt(at);
      if (wanted === '') return undefined;
      tokens.push((found) => found === wanted);
    }
  }
  return tokens;
}

/** What a set holds: characters and ranges. Classes and escapes in a set are not understood. */
function membersOf(text: string): ((character: string) => boolean) | undefined {
  if (text === '' || /[\\[]/.test(text)) return undefined;
  const ranges: [string, string][] = [];
  for (let at = 0; at < text.length; at += 1) {
    const isRange = text.charAt(at + 1) === '-' && at + 2 < text.length;
    ranges.push([text.charAt(at), text.charAt(isRange ? at + 2 : at)]);
    if (isRange) at += 2;
  }
  return (character) => ranges.some(([from, to]) => from <= character && character <= to);
}

function matchesParts(parts: readonly Part[], names: readonly string[]): boolean {
  let live = reachable(parts, [0]);
  for (const name of names) {
    const next: number[] = [];
    for (const at of live) {
      const part = parts[at];
      if (part === 'any_parts') next.push(at, ...(at === parts.length - 1 ? [at + 1] : []));
      else if (part !== undefined && matchesName(part, name)) next.push(at + 1);
    }
    live = reachable(parts, next);
  }
  return live.has(parts.length);
}

/** Positions reached without a name: any number of parts may be none, but not at the end, where `a/**` is what lies in `a`. */
function reachable(parts: readonly Part[], from: readonly number[]): Set<number> {
  const positions = new Set(from);
  for (const at of positions) if (parts[at] === 'any_parts' && at < parts.length - 1) positions.add(at + 1);
  return positions;
}

/** Only the last star is tried again: where a later one can match, an earlier one need not take more. */
function matchesName(tokens: readonly Token[], name: string): boolean {
  let at = 0;
  let token = 0;
  let star: { readonly token: number; at: number } | undefined;
  while (at < name.length) {
    const wanted = tokens[token];
    if (wanted === 'star') {
      token += 1;
      star = { token, at };
    } else if (wanted?.(name.charAt(at)) === true) {
      token += 1;
      at += 1;
    } else if (star !== undefined) {
      star.at += 1;
      token = star.token;
      at = star.at;
    } else return false;
  }
  while (tokens[token] === 'star') token += 1;
  return token === tokens.length;
}

/** One `.gitignore` of the base: `dir` relative to the root (characters are bytes), empty for the root. */
export interface IgnoreFile {
  readonly dir: string;
  readonly text: string;
}

/** Ignore files and lines that are looked at; later ones are not. */
export const MAX_IGNORE_FILES = 2000;
export const MAX_IGNORE_LINES = 5000;

interface Rule {
  readonly isNegated: boolean;
  readonly pattern: RegExp;
}

/**
 * Decides by the base's ignore rules whether a folder is ignored: the last rule that matches wins, deeper files win over those
 * above, and what lies in an ignored folder is ignored. Folders are byte paths as `latin1`.
 */
export function ignoredFolders(files: readonly IgnoreFile[]): (folder: string) => boolean {
  const rules = new Map<string, Rule[]>();
  for (const file of files.slice(0, MAX_IGNORE_FILES)) rules.set(file.dir, [...(rules.get(file.dir) ?? []), ...parseRules(file.text)]);
  return (folder) => {
    const parts = folder.split('/');
    return parts.some((_, at) => isIgnoredItself(rules, parts.slice(0, at + 1)));
  };
}

function isIgnoredItself(rules: ReadonlyMap<string, readonly Rule[]>, parts: readonly string[]): boolean {
  for (let depth = parts.length - 1; depth >= 0; depth -= 1) {
    const below = parts.slice(depth).join('/');
    const rule = (rules.get(parts.slice(0, depth).join('/')) ?? []).findLast((one) => one.pattern.test(below));
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
  if (pattern === '' || pattern.startsWith('#') || pattern.length > 1000) return [];
  const isNegated = pattern.startsWith('!');
  if (isNegated) pattern = pattern.slice(1);
  pattern = pattern.replace(/\/+$/, '');
  if (pattern === '') return [];
  const isAnchored = pattern.includes('/');
  const body = globToExpression(pattern.replace(/^\/+/, ''));
  if (body === undefined) return [];
  return [{ isNegated, pattern: new RegExp(isAnchored ? `^${body}$` : `^(?:[^]*/)?${body}$`) }];
}

/** A glob of git as an expression; undefined for one that git could not match either, or that would be slow to match. */
function globToExpression(glob: string): string | undefined {
  if ((glob.match(/\*+/g) ?? []).length > 8) return undefined;
  let expression = '';
  for (let at = 0; at < glob.length; at += 1) {
    const rest = glob.slice(at);
    const set = /^\[([!^]?)(\]?[^\]]*)\]/.exec(rest);
    if (rest.startsWith('**/') && (at === 0 || glob[at - 1] === '/')) {
      expression += '(?:[^]*/)?';
      at += 2;
    } else if (rest === '**' && glob[at - 1] === '/') {
      expression += '[^]+';
      at += 1;
    } else if (rest.startsWith('*')) {
      expression += '[^/]*';
      while (glob[at + 1] === '*') at += 1;
    } else if (rest.startsWith('?')) expression += '[^/]';
    else if (rest.startsWith('\\')) {
      const next = glob[at + 1];
      if (next === undefined) return undefined;
      expression += escapeCharacter(next);
      at += 1;
    } else if (set !== null) {
      expression += `(?!/)[${set[1] === '' ? '' : '^'}${(set[2] ?? '').replace(/[\\[\]^]/g, '\\$&')}]`;
      at += set[0].length - 1;
    } else expression += escapeCharacter(glob[at] ?? '');
  }
  try {
    new RegExp(expression);
    return expression;
  } catch {
    return undefined;
  }
}

function escapeCharacter(character: string): string {
  return /[\\^$.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
}

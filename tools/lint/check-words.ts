// The tree speaks of the product alone: no paths of a developer's machine, no private registries, no notes to oneself.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from './run-tool.ts';

// Written in pieces, so that this file passes its own check.
const note = ['TO', 'DO|FIX', 'ME|X', 'XX'].join('');
const workshop = ['sub-?agent br', 'ief|the br', 'ief says|helper sess', 'ion|as an A', 'I'].join('');
const REFUSED: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`\\b(${note})\\b`), 'a note to oneself'],
  [
    /(?<![\w.])\/(home|Users)\/(?!me\b|user\b|agent\b|runner\b|firecrew\b|node\b|\$|<|\.\.\.)[a-z][\w.-]*\//,
    "a path of a developer's machine",
  ],
  [new RegExp(`(?<![\\w.])/${'wo'}rk/(main|shared|\\.library)\\b|\\.\\./shared/(facts|systems)`), "a path of a developer's machine"],
  [/\/tmp\/(brief|claude|bash_jobs)/, "a path of a developer's machine"],
  [/https?:\/\/(?!registry\.npmjs\.org\b)[\w.-]*(artifactory|nexus|verdaccio|npm-registry|registry\.npm)[\w.-]*/i, 'a private registry'],
  [/\b(issue|task|plan|review) #\d+\b/i, 'a number of a tracker'],
  [new RegExp(`\\b(${workshop})\\b`, 'i'), 'a word of the workshop'],
];
const LOCK_FILE = 'pnpm-lock.yaml';
const NOT_READ = /^tests\/cases\/|\.(png|jpg|gif|ico|woff2?|gz|zst|tar|bin)$|^LICENSE$/;
/** Larger files are data, not text of ours. */
const MAX_BYTES = 1024 * 1024;

/** Every refused word in the files of the repository at `root` (tracked, and new ones that are not ignored). */
export async function checkWords(root: string): Promise<readonly string[]> {
  const { status, output } = await runTool('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], root);
  if (status !== 0) return [`git cannot list the files: ${output}`];
  const paths = output.split('\0').filter((path) => path !== '' && !NOT_READ.test(path));
  return paths.flatMap((path) => wordsOf(root, path));
}

function wordsOf(root: string, path: string): readonly string[] {
  const file = join(root, path);
  if (!existsSync(file) || !statSync(file).isFile() || statSync(file).size > MAX_BYTES) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  if (path === LOCK_FILE) {
    return lines.flatMap((line, index) => (/https?:\/\/|tarball:/.test(line) ? [`${path}:${index + 1}: an address of a registry`] : []));
  }
  return lines.flatMap((line, index) =>
    REFUSED.flatMap(([pattern, what]) => (pattern.test(line) ? [`${path}:${index + 1}: ${what}: ${line.trim().slice(0, 120)}`] : [])),
  );
}

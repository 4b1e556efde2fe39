import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ManifestEntry } from '@firecrew/artifact-capture';
import { type CommitPlan, planCommit } from '@firecrew/delivery';

/** The environment of a person: an identity, and no configuration of this machine. */
export const PERSON: Record<string, string> = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Dev',
  GIT_AUTHOR_EMAIL: 'dev@example.test',
  GIT_COMMITTER_NAME: 'Dev',
  GIT_COMMITTER_EMAIL: 'dev@example.test',
  GIT_AUTHOR_DATE: '1600000000 +0000',
  GIT_COMMITTER_DATE: '1600000000 +0000',
};

export interface Scratch {
  readonly dir: string;
  readonly path: (...parts: string[]) => string;
  readonly remove: () => void;
}

export function scratch(): Scratch {
  const dir = mkdtempSync(join(tmpdir(), 'firecrew-test-'));
  return { dir, path: (...parts) => join(dir, ...parts), remove: () => rmSync(dir, { recursive: true, force: true }) };
}

/** Git as a person runs it. */
export function git(cwd: string, args: readonly string[], input?: string | Buffer): string {
  return execFileSync('git', [...args], { cwd, env: PERSON, input: input ?? '', stdio: ['pipe', 'pipe', 'pipe'], maxBuffer: 1 << 26 })
    .toString('latin1')
    .trim();
}

export function put(root: string, name: string | Buffer, content: string | Buffer, mode = 0o644): void {
  const path = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]);
  mkdirSync(Buffer.from(dirname(path.toString('latin1')), 'latin1'), { recursive: true });
  writeFileSync(path, content, { mode });
}

/** A repository of a person with one commit of `files`. */
export function personRepository(dir: string, files: Record<string, string>): string {
  mkdirSync(dir, { recursive: true });
  git(dir, ['init', '-q', '-b', 'trunk']);
  for (const [name, content] of Object.entries(files)) put(dir, name, content);
  return commitAll(dir, 'first');
}

export function commitAll(dir: string, message: string): string {
  git(dir, ['add', '-A', '-f']);
  git(dir, ['commit', '-q', '--allow-empty', '-m', message]);
  return git(dir, ['rev-parse', 'HEAD']);
}

export interface FakeTree {
  readonly manifest: ManifestEntry[];
  readonly open: (path: Uint8Array) => AsyncIterable<Uint8Array>;
}

export type FakeEntry = readonly [path: string | Buffer, content: string | Buffer, kind?: ManifestEntry['kind']];

/** A snapshot in memory. */
export function fakeTree(entries: readonly FakeEntry[]): FakeTree {
  const contents = new Map<string, Buffer>();
  const manifest = entries.map(([name, text, kind]): ManifestEntry => {
    const path = Buffer.from(name);
    const content = Buffer.from(text);
    contents.set(path.toString('latin1'), content);
    const sha256 = kind === 'directory' ? '' : createHash('sha256').update(content).digest('hex');
    return { path, kind: kind ?? 'file', size: content.length, sha256 };
  });
  async function* open(path: Uint8Array): AsyncIterable<Uint8Array> {
    const content = contents.get(Buffer.from(path).toString('latin1'));
    if (content === undefined) throw new Error('asked for a path that is not in the tree');
    yield content;
  }
  return { manifest, open };
}

export const PLAN: CommitPlan = planCommit({
  title: 'Change it',
  missionId: 'msn_0123456789abcdef',
  attempt: 1,
  check: 'verified',
  atSeconds: 1_700_000_000,
});

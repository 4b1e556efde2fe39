import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { CreateMissionInput } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { inspectRepository, listUploadFiles, packHead, snapshotDirectory, writeBranch } from '@firecrew/workspace';

const run = promisify(execFile);
const SETTINGS = ['-c', 'user.name=Tester', '-c', 'user.email=tester@example.test', '-c', 'commit.gpgsign=false'];
/** Neither the person's configuration nor the machine's, and dates that make commits the same everywhere. */
const GIT_ENVIRONMENT = {
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_DATE: '2024-05-01T12:00:00Z',
  GIT_COMMITTER_DATE: '2024-05-01T12:00:00Z',
};

/** Runs git in `folder` with fixed identity and dates; gives what it printed. */
export async function git(folder: string, ...args: string[]): Promise<string> {
  const { stdout } = await run('git', [...SETTINGS, '-C', folder, ...args], { env: GIT_ENVIRONMENT, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Makes a repository of one commit on `main`. */
export async function makeRepository(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(folder, { recursive: true });
  await git(folder, 'init', '-q', '-b', 'main');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  await git(folder, 'add', '-A', '-f');
  await git(folder, 'commit', '-q', '-m', 'first');
  return folder;
}

/** Uploads a clean repository as a client does, and gives the mission's source. */
export async function uploadRepository(
  client: FirecrewClient,
  folder: string,
  scratch: string,
): Promise<Extract<CreateMissionInput['repository'], { kind: 'upload' }>> {
  await mkdir(scratch, { recursive: true });
  const repository = await inspectRepository(folder, process.env);
  const list = await listUploadFiles(repository, {});
  const { commit } = await packHead(repository, join(scratch, 'head.pack'));
  const onlyPaths = new Set(list.files.map((file) => file.path.toString('latin1')));
  const snapshot = await snapshotDirectory(folder, join(scratch, 'tree.blob'), { onlyPaths });
  const pack = await client.upload(join(scratch, 'head.pack'));
  const blob = await client.upload(join(scratch, 'tree.blob'));
  return {
    kind: 'upload',
    pack: pack.digest,
    shallow: [],
    head: commit,
    branch: 'main',
    snapshot: blob.digest,
    snapshotId: snapshot.snapshotId,
    dirty: false,
    author: null,
    includedSecrets: [],
  };
}

/** What a mission delivered, written into the repository it came from as the command line would. */
export async function fetchDelivery(client: FirecrewClient, missionId: string, folder: string, packFile: string) {
  const pack = await client.pack(missionId, packFile);
  const written = await writeBranch(await inspectRepository(folder, process.env), { packFile, branch: pack.branch, commit: pack.commit });
  const tree = (await git(folder, 'rev-parse', `${pack.commit}^{tree}`)).trim();
  return { ...written, commit: pack.commit, tree };
}

/** Path and content of every file at a commit. */
export async function filesAt(folder: string, commit: string): Promise<Record<string, string>> {
  const names = (await git(folder, 'ls-tree', '-r', '--name-only', '-z', commit)).split('\0').filter((name) => name !== '');
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await git(folder, 'show', `${commit}:${name}`)] as const)));
}

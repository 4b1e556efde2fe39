import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inspectRepository, packHead, snapshotDirectory } from '@firecrew/workspace';
import type { TestServer } from './running-server.ts';

/** Makes a repository of one commit and uploads it; gives the source of a mission. */
export async function uploadRepository(server: TestServer, files: Readonly<Record<string, string>>) {
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-upload-'));
  try {
    const root = join(folder, 'repository');
    await mkdir(root);
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', root, '-c', 'user.name=T', '-c', 'user.email=t@example.test', ...args], {
        env: { PATH: process.env.PATH ?? '', GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
      });
    git('init', '-q', '-b', 'main');
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(root, dirname(path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    git('add', '-A');
    git('commit', '-q', '-m', 'first');
    const { commit } = await packHead(await inspectRepository(root, {}), join(folder, 'pack'));
    const tracked = new Set(Object.keys(files));
    const snapshot = await snapshotDirectory(root, join(folder, 'blob'), { onlyPaths: tracked });
    const send = async (name: string) =>
      ((await server.call('POST', '/v1/uploads', { bytes: await readFile(join(folder, name)) })).body as { digest: string }).digest;
    return {
      kind: 'upload',
      pack: await send('pack'),
      shallow: [],
      head: commit,
      branch: 'main',
      snapshot: await send('blob'),
      snapshotId: snapshot.snapshotId,
      dirty: false,
      author: null,
      includedSecrets: [],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

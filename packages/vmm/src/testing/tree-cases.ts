import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { packTree, unpackTree } from '@firecrew/workspace';
import { GuestRefusal } from '../guest-client/read-body.ts';
import { getTree, putTree } from '../guest-client/transfers.ts';
import { type BootedVm, type DriverCase, shell, withVm } from './driver-rig.ts';

const refusedAs = (code: string) => (error: unknown) => error instanceof GuestRefusal && error.guestCode === code;

/** A case with a folder of the host that holds a small tree. */
function treeCase(name: string, run: (booted: BootedVm, folder: string) => Promise<void>, needsOwnVm = false): DriverCase {
  return {
    name,
    needsIsolation: false,
    needsOwnVm,
    run: (rig) =>
      withVm(rig, async (booted) => {
        const folder = await mkdtemp(join(tmpdir(), 'firecrew-tree-'));
        try {
          await makeTree(join(folder, 'tree'));
          await run(booted, folder);
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      }),
  };
}

async function makeTree(root: string): Promise<void> {
  await mkdir(join(root, 'src'), { recursive: true });
  await mkdir(join(root, 'empty'));
  await writeFile(join(root, 'src/run.sh'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
  await writeFile(join(root, 'big'), Buffer.alloc(2_000_000, 'b'));
  await symlink('src/run.sh', join(root, 'link'));
}

/** Trees in and out. */
export const treeCases: readonly DriverCase[] = [
  treeCase('a tree that is put comes back byte for byte, and its trailer proves it', async ({ vm }, folder) => {
    const session = await vm.session();
    const { workspace } = vm.guestPaths;
    const put = await putTree(session, workspace, packTree(join(folder, 'tree')).stream);
    assert.deepEqual(put, { entries: 4, bytes: 2_000_000 + 19 });
    assert.equal((await shell(vm, './link && echo new > added')).output, 'ran\n');
    const back = await getTree(session, 'first', workspace);
    const unpacked = await unpackTree(back.archive, join(folder, 'back'));
    const trailer = await back.trailer(unpacked.trailer);
    assert.deepEqual([trailer.entries, trailer.bytes, trailer.sha256], [5, unpacked.trailer.bytes, unpacked.trailer.digest]);
    assert.equal(await readFile(join(folder, 'back/added'), 'utf8'), 'new\n');
  }),
  treeCase('a second put takes the place of the first as a whole', async ({ vm }, folder) => {
    const session = await vm.session();
    const { workspace } = vm.guestPaths;
    await putTree(session, workspace, packTree(join(folder, 'tree')).stream);
    await putTree(session, `${workspace}/.git`, packTree(join(folder, 'tree/src')).stream);
    await putTree(session, workspace, packTree(join(folder, 'tree/src')).stream);
    assert.equal((await shell(vm, 'ls -A')).output, '.git\nrun.sh\n');
  }),
  treeCase('a tree that is put over a folder leaves what else is there, and wins where both have a path', async ({ vm }, folder) => {
    const session = await vm.session();
    const { workspace } = vm.guestPaths;
    await putTree(session, workspace, packTree(join(folder, 'tree/src')).stream);
    await shell(vm, 'mkdir -p src/made big/made && echo of-the-set-up > src/run.sh && echo kept > src/made/kept && ln -s /nowhere link');
    const put = await putTree(session, workspace, packTree(join(folder, 'tree')).stream, { onto: 'over' });
    assert.deepEqual(put, { entries: 4, bytes: 2_000_000 + 19, replaced: 3 });
    const { output } = await shell(vm, 'ls -A . src && ./link && cat src/made/kept && test -w big && stat -c %s big');
    assert.equal(output, '.:\nbig\nempty\nlink\nrun.sh\nsrc\n\nsrc:\nmade\nrun.sh\nran\nkept\n2000000\n');
  }),
  treeCase('a tree is taken out of a folder as far as the folder has it', async ({ vm }, folder) => {
    const session = await vm.session();
    const { workspace } = vm.guestPaths;
    const tree = () => packTree(join(folder, 'tree')).stream;
    await putTree(session, workspace, tree());
    await shell(vm, 'echo more >> src/run.sh; rm link; echo made > src/made');
    const { out } = await putTree(session, workspace, tree(), { onto: 'out' });
    assert.deepEqual(out, { removed: 1, absent: 1, differing: 1, named: ['src/run.sh'] });
    assert.equal((await shell(vm, 'find . | sort')).output, '.\n./empty\n./src\n./src/made\n./src/run.sh\n');
  }),
  treeCase('a cut archive changes nothing', async ({ vm }, folder) => {
    const session = await vm.session();
    const { workspace } = vm.guestPaths;
    await putTree(session, workspace, packTree(join(folder, 'tree/src')).stream);
    const whole = await buffer(packTree(join(folder, 'tree')).stream);
    await assert.rejects(putTree(session, workspace, Readable.from([whole.subarray(0, 1_000_000)])), refusedAs('archive_refused'));
    await assert.rejects(
      putTree(session, workspace, packTree(join(folder, 'tree')).stream, { maxBytes: 1000 }),
      refusedAs('archive_refused'),
    );
    assert.equal((await shell(vm, 'ls -A')).output, 'run.sh\n');
  }),
  treeCase('read-only files cannot be changed but can be put anew', async ({ vm }, folder) => {
    const session = await vm.session();
    const { agentDir } = vm.guestPaths;
    for (let round = 0; round < 2; round += 1) {
      await putTree(session, agentDir, packTree(join(folder, 'tree')).stream, { readOnly: true });
      const { output } = await shell(vm, `cd ${agentDir} && stat -c %a . src src/run.sh big && ./src/run.sh`);
      assert.equal(output, '555\n555\n555\n444\nran\n');
    }
  }),
  treeCase('folders are left out by the exclusion rule alone, and are reported', async ({ vm }, folder) => {
    const session = await vm.session();
    const made = 'mkdir -p node_modules/a dist kept/dist build && printf 12345 > node_modules/a/x; touch dist/x kept/dist/x build/x';
    await shell(vm, made);
    const exclude = {
      hard: ['node_modules'],
      listed: ['dist', 'build'],
      trackedDirs: ['kept/dist'],
      ignore: [{ dir: '', text: 'dist/\n' }],
    };
    const back = await getTree(session, 'excluded', vm.guestPaths.workspace, exclude);
    const { entries, trailer } = await unpackTree(back.archive, join(folder, 'back'));
    assert.deepEqual(entries.map((entry) => Buffer.from(entry.path).toString()).sort(), ['build/x', 'kept/dist/x']);
    const { excluded } = await back.trailer(trailer);
    assert.deepEqual(
      excluded.map(({ path, files, bytes, ignored }) => [path, files, bytes, ignored]),
      [
        ['dist', 1, 0, true],
        ['node_modules', 1, 5, false],
      ],
    );
    const all = await getTree(session, 'all', vm.guestPaths.workspace);
    assert.equal((await unpackTree(all.archive, join(folder, 'all'))).entries.length, 4);
  }),
  treeCase('a missing path is refused, never an empty archive, and has no trailer', async ({ vm }) => {
    const session = await vm.session();
    await assert.rejects(getTree(session, 'missing', '/no/such/folder'), refusedAs('path_missing'));
    await assert.rejects(
      getTree(session, 'strange', '/', { hard: ['src'], listed: [], trackedDirs: [], ignore: [] }),
      refusedAs('exclusion_unknown'),
    );
  }),
  treeCase(
    'a tree is rescued from the disk of a guest whose agent is dead',
    async ({ vm }, folder) => {
      await putTree(await vm.session(), vm.guestPaths.workspace, packTree(join(folder, 'tree')).stream);
      await shell(vm, 'sync');
      for (const pid of await vm.pids()) process.kill(pid, 'SIGKILL');
      await vm.exited;
      await assert.rejects(vm.session(), { code: 'vm_exited' });
      const rescued = await vm.rescue(vm.guestPaths.workspace);
      const { entries, trailer } = await unpackTree(rescued.archive, join(folder, 'back'));
      assert.equal(entries.length, (await rescued.trailer(trailer)).entries);
      assert.equal(entries.length, 4);
    },
    true,
  ),
  treeCase(
    'a rescue follows no link that the guest left in the way',
    async ({ vm }) => {
      await shell(vm, 'ln -s /etc bad; ln -s / root');
      const { workspace } = vm.guestPaths;
      for (const path of [`${workspace}/bad`, `${workspace}/root/etc`, `${workspace}/../../etc`, 'relative', '/']) {
        await assert.rejects(vm.rescue(path), { code: 'rescue_refused' });
      }
    },
    true,
  ),
];

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getTree, putTree, startExec, type Vm, waitExec } from '@firecrew/vmm';
import { packTree, unpackTree } from '@firecrew/workspace';
import { run, watchGrowth } from '../support/processes.ts';
import { type BenchRow, measured } from '../support/row.ts';
import { memoryFolder, withSandbox } from '../support/sandbox.ts';
import { bestInTurn, timed } from '../support/timing.ts';

const SMALL_FILES = 20_000;
const FILES_PER_FOLDER = 100;
const SMALL_BYTES = 2_500;
const LARGE_FILES = 4;
const LARGE_BYTES = 62_500_000;
const ROUNDS = 5;

async function makeTree(root: string): Promise<void> {
  const noise = randomBytes(SMALL_BYTES * 2);
  for (let index = 0; index < SMALL_FILES; index += 1) {
    const folder = join(root, `package-${Math.floor(index / FILES_PER_FOLDER)}`, 'src');
    if (index % FILES_PER_FOLDER === 0) await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `module-${index}.js`), noise.subarray(index % SMALL_BYTES, (index % SMALL_BYTES) + SMALL_BYTES));
  }
  const block = randomBytes(LARGE_BYTES);
  for (let index = 0; index < LARGE_FILES; index += 1) await writeFile(join(root, `large-${index}.bin`), block);
}

async function tarTo(source: string, target: string): Promise<number> {
  await mkdir(target);
  const ms = await timed(() => run('sh', ['-c', 'tar -c -C "$0" . | tar -x -C "$1"', source, target]));
  await rm(target, { recursive: true });
  return ms;
}

async function putOnce(vm: Vm, source: string): Promise<number> {
  const session = await vm.session();
  // A turn's tree comes into a fresh sandbox; to take away the one before is no part of it, as for tar.
  await runShell(vm, 'rm -rf "$0"/* "$0"/.[!.]*', vm.guestPaths.workspace);
  return await timed(async () => {
    // Nobody asks for a digest on the way in: a turn's comes out of a blob that has its own.
    const { chunks, done } = packTree(source, { digest: false });
    await Promise.all([putTree(session, vm.guestPaths.workspace, chunks), done]);
  });
}

async function getOnce(vm: Vm, id: string, target: string): Promise<number> {
  const session = await vm.session();
  const ms = await timed(async () => {
    const { archive, trailer } = await getTree(session, id, vm.guestPaths.workspace);
    // As when a turn's tree is collected: the trailer's counts and digest are compared with what came before anything is kept.
    await unpackTree(archive, target, { proof: trailer });
  });
  await rm(target, { recursive: true });
  return ms;
}

/** Runs a script in the guest and gives its exit code. */
async function runShell(vm: Vm, script: string, ...args: readonly string[]): Promise<number | null> {
  const session = await vm.session();
  const id = randomUUID();
  await startExec(session, { id, argv: ['/bin/sh', '-c', script, ...args], cwd: '/', timeoutMs: 10_000 });
  return (await waitExec(session, id, 10_000)).exitCode;
}

const hasGnuTar = async (vm: Vm): Promise<boolean> => (await runShell(vm, 'tar --version | grep -q "GNU tar"')) === 0;

/** A tree of 20,000 small files and four large ones, 300 MB, into a sandbox and out of it, against `tar c | tar x`. */
export async function workspaceSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  const [source, target, peer] = ['source', 'out', 'peer'].map((name) => join(folder.path, name)) as [string, string, string];
  try {
    await mkdir(source);
    await makeTree(source);
    return await withSandbox(folder.path, async (vm, agentPid) => {
      const [host, guest] = [watchGrowth('self'), watchGrowth(agentPid)];
      const into = await bestInTurn(
        ROUNDS,
        () => putOnce(vm, source),
        () => tarTo(source, peer),
      );
      const out = await bestInTurn(
        ROUNDS,
        () => getOnce(vm, randomUUID(), target),
        () => tarTo(source, peer),
      );
      // Where the guest has GNU tar, its speed is what one may expect.
      const wanted = { atLeast: (await hasGnuTar(vm)) ? 0.5 : 0.15 };
      const note = (ms: { ours: number; peer: number }) => `${ms.ours.toFixed(0)} ms; tar ${ms.peer.toFixed(0)} ms`;
      return [
        measured('workspace: in, speed of GNU tar', into.peer / into.ours, 'x', wanted, note(into)),
        measured('workspace: out, speed of GNU tar', out.peer / out.ours, 'x', wanted, note(out)),
        measured('workspace: growth of the host process', host.stop(), 'MiB', { atMost: 96 }),
        measured('workspace: growth of the guest agent', guest.stop(), 'MiB', { atMost: 96 }),
      ];
    });
  } finally {
    await folder.remove();
  }
}

import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';
import { LayerStore, takeLayerLock } from '@firecrew/rootfs';
import { type Driver, ProcessDriver, type Vm } from '@firecrew/vmm';
import { snapshotDirectory } from '@firecrew/workspace';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptContext } from '../../src/shim/attempt-context.ts';
import { EgressGate } from '../../src/shim/egress-gate.ts';
import { EventSpool } from '../../src/shim/event-spool.ts';
import { Lease } from '../../src/shim/lease.ts';
import { LogSpool } from '../../src/shim/log-spool.ts';
import { ModelGate } from '../../src/shim/model-gate.ts';
import { prepareLayer } from '../../src/shim/prepare-layer.ts';
import { boot, destroy, inject, setUp } from '../../src/shim/steps.ts';
import { turnPaths } from '../../src/turn-folder/turn-folder.ts';
import { turnSpec } from './turn-spec.ts';

const ID = (digit: string): `sha256:${string}` => `sha256:${digit.repeat(64)}`;
const ARTIFACTS = { kernel: ID('1'), payload: ID('2'), image: ID('3') };
const NEVER = new AbortController().signal;
const clock = () => performance.now();
const TREE = { lock: 'one\n', 'src/a.js': 'a\n', 'test.js': 't\n' };
/** Leaves a product, where it sees the named file and no other. */
const SET_UP = 'test "$(find . -type f)" = ./lock && mkdir -p made && cp lock made/lock';

let bundles = '';
beforeAll(async () => {
  bundles = await mkdtemp(join(tmpdir(), 'fc-layer-bundle-'));
  await build({
    entryPoints: [fileURLToPath(new URL('../../../guest-agent/src/main.ts', import.meta.url))],
    outfile: join(bundles, 'guest-agent.cjs'),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
  });
});
afterAll(() => rm(bundles, { recursive: true, force: true }));

let folder = '';
let store: LayerStore;
/** What lay in the workspace of each VM whose disk was given. */
let sealed: string[][] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-layer-'));
  store = new LayerStore(join(folder, 'layers'), { maxBytes: 1e9, unusedMs: 1e9, reserveBytes: 0 });
  await store.prepare();
  sealed = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Sandboxes with a disk beside them, which is a clean ext4 as far as anybody looks; `seal` may be another. */
function driverWithDisks(seal?: (vm: Vm) => Promise<string>): Driver {
  const driver = new ProcessDriver({ bubblewrap: 'off' });
  const give = async (vm: Vm): Promise<string> => {
    sealed.push((await readdir(vm.guestPaths.workspace, { recursive: true })).sort());
    const disk = Buffer.alloc(4096);
    disk.writeUInt16LE(0xef53, 1024 + 0x38);
    disk.writeUInt16LE(1, 1024 + 0x3a);
    const path = join(folder, `disk-${sealed.length}`);
    await writeFile(path, disk);
    return path;
  };
  const boot: Driver['boot'] = async (spec) => {
    const vm = await driver.boot({ ...spec, allowUnisolated: true, limits: { memoryMib: 64, diskMib: 64 } });
    return {
      ...{ id: vm.id, isolation: vm.isolation, guestPaths: vm.guestPaths, socketPath: vm.socketPath, exited: vm.exited },
      ...{ pids: () => vm.pids(), session: (ms) => vm.session(ms), rescue: (path, exclude) => vm.rescue(path, exclude) },
      ...{ destroy: () => vm.destroy(), seal: () => (seal ?? give)(vm) },
    };
  };
  return { name: 'qemu', probe: () => driver.probe(), boot };
}

let attempts = 0;

/** An attempt that is about to boot. */
async function newAttempt(
  over: { setup?: string; files?: string[]; tree?: Record<string, string>; driver?: Driver; layers?: string } = {},
) {
  attempts += 1;
  const paths = turnPaths(join(folder, `t${attempts}`));
  await mkdir(paths.inputs, { recursive: true });
  const tree = join(folder, `tree${attempts}`);
  for (const [path, text] of Object.entries(over.tree ?? TREE)) {
    await mkdir(join(tree, path, '..'), { recursive: true });
    await writeFile(join(tree, path), text);
  }
  const staged = join(folder, `blob${attempts}`);
  const snapshot = await snapshotDirectory(tree, staged);
  const blob = { digest: snapshot.blobDigest, bytes: 1 };
  await writeFile(join(paths.inputs, blob.digest), await readFile(staged));
  const layer = { files: over.files ?? ['lock'], workspaceId: 'wsp_0123456789abcdef' };
  const spec = turnSpec({
    attempt: (attempts % 1000) + 1,
    driver: 'qemu',
    setup: { command: over.setup ?? SET_UP, allow: [], timeoutMs: 60_000, layer },
    workspace: { snapshotId: snapshot.snapshotId, blob },
    base: { snapshotId: snapshot.snapshotId, blob, commit: null },
    limits: { turnTimeoutMs: 120_000, checkpointEveryMs: 60_000, logBytes: 100_000 },
  });
  const events = new EventSpool(paths.events);
  const context: AttemptContext = {
    spec,
    paths,
    events,
    contract: [],
    lease: new Lease(clock, 1e9, clock()),
    gate: new EgressGate({ spec, leaseValid: () => true, audit: () => undefined, serverAddresses: [] }),
    model: new ModelGate({ launch: null, backend: spec.backend, leaseValid: () => true, event: () => undefined }),
    clock,
    driver: over.driver ?? driverWithDisks(),
    layers: over.layers ?? { store, artifacts: ARTIFACTS },
    guestAgent: { node: process.execPath, bundle: join(bundles, 'guest-agent.cjs') },
    caller: { binds: [], path: '/usr/bin:/bin', leftOut: [] },
    caBundle: null,
    log: new LogSpool(paths.log, 100_000),
    deadlineMs: clock() + 120_000,
    state: {
      ...{
        vm: null,
        layer: null,
        noLayer: new Set<string>(),
        isolation: 'none',
        base: snapshot.entries,
        tree: null,
        checkpoint: false,
        change: 'none',
      },
      ...{ checkedSnapshot: null, checkTimedOut: false, feedback: null, checkInputsChanged: [], restoredPaths: [] },
      ...{ exhausted: null, bootFault: null, vmEnd: null, rounds: [] },
    },
  };
  const told = async (): Promise<string[]> =>
    (await readFile(paths.events, 'utf8'))
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const { body } = JSON.parse(line) as { body: { kind: string; exitCode?: number; code?: string; message?: string } };
        return body.kind === 'notice' ? `${body.code}: ${body.message}` : `${body.kind} ${body.exitCode}`;
      });
  return { context, told, prepare: (signal = NEVER) => prepareLayer(context, 'agent', 1, signal) };
}

describe('the layer of a set-up', { timeout: 60_000 }, () => {
  it('is built of the named files alone, holds what was made of them, and is used by the next attempt', async () => {
    const first = await newAttempt();
    expect(await first.prepare()).toEqual({ type: 'done' });
    expect(await first.told()).toEqual([
      'setup.ended 0',
      expect.stringMatching(/^setup_layer_built: the layer [0-9a-f]{12} .* in [0-9.]+ s$/),
    ]);
    expect(sealed).toEqual([['made', 'made/lock']]);
    const next = await newAttempt({ tree: { ...TREE, 'src/a.js': 'another tree\n' } });
    await next.prepare();
    expect([next.context.state.layer?.key, await next.told()]).toEqual([first.context.state.layer?.key, []]);
    const other = await newAttempt({ tree: { ...TREE, lock: 'two\n' } });
    await other.prepare();
    expect([other.context.state.layer?.key === first.context.state.layer?.key, sealed.length]).toEqual([false, 2]);
    for (const { context } of [first, next, other]) await context.state.layer?.close();
    expect((await readdir(folder)).filter((name) => name.startsWith('disk-'))).toEqual([]);
  });

  it('is neither used nor made by an attempt that may reach something else by now', async () => {
    const reach = { revision: 'a'.repeat(64), allow: [], setupAllow: ['other.example'], ceiling: null, addressRules: [] };
    const before = await newAttempt();
    before.context.gate.replace(reach);
    await before.prepare();
    expect([before.context.state.layer, sealed]).toEqual([null, []]);
    expect(await before.told()).toEqual([expect.stringMatching(/^setup_layer_none: .*may reach was changed/)]);

    let change: () => void = () => undefined;
    const driver = driverWithDisks(async (vm) => {
      change();
      const disk = join(folder, 'disk-of-a-changed-reach');
      await writeFile(disk, await readFile(join(vm.guestPaths.workspace, 'made/lock')));
      return disk;
    });
    const during = await newAttempt({ driver });
    change = () => void during.context.gate.replace(reach);
    await during.prepare();
    expect(during.context.state.layer).toBeNull();
    expect(await during.told()).toEqual(['setup.ended 0', expect.stringMatching(/^setup_layer_none: .*may reach was changed/)]);

    const next = await newAttempt();
    await next.prepare();
    expect(await next.told()).toEqual(['setup.ended 0', expect.stringMatching(/^setup_layer_built: /)]);
    await next.context.state.layer?.close();
  });

  it('is built by one of two attempts that want it at once', async () => {
    const both = [await newAttempt(), await newAttempt()];
    await Promise.all(both.map((attempt) => attempt.prepare()));
    expect([sealed.length, new Set(both.map(({ context }) => context.state.layer?.key)).size]).toEqual([1, 1]);
    expect((await Promise.all(both.map((attempt) => attempt.told()))).map((lines) => lines.length).sort()).toEqual([0, 2]);
    for (const { context } of both) await context.state.layer?.close();
  });

  it.each([
    ['fails', 'echo of the set-up; exit 3', /exited with status 3: of the set-up\n \(it saw no files of the tree but those named/],
    ['changes a named file', 'echo more >> lock', /changed or removed a file that is named for the layer: lock$/],
    ['removes a named file', 'rm lock', /changed or removed a file that is named for the layer$/],
    ['makes a named file executable', 'chmod +x lock', /changed or removed a file that is named for the layer: lock$/],
    ['writes to a path of the tree', 'mkdir src; echo b > src/a.js', /wrote to a path of the tree: src\/a.js$/],
    ['puts a link in the place of a file of the tree', 'ln -s lock test.js', /wrote to a path of the tree: test.js$/],
  ])('is not kept where it %s, which is told once', async (_what, setup, message) => {
    const attempt = await newAttempt({ setup });
    for (let time = 0; time < 2; time += 1) expect(await attempt.prepare()).toEqual({ type: 'done' });
    const told = await attempt.told();
    expect(told).toEqual([
      expect.stringMatching(/^setup.ended/),
      expect.stringMatching(/^setup_layer_none: no layer of the set-up, which runs in each VM: /),
    ]);
    expect(told[1]).toMatch(message);
    expect([attempt.context.state.layer, await store.list(), sealed]).toEqual([null, [], []]);
    expect((await readdir(attempt.context.paths.root)).filter((name) => name.startsWith('v'))).toEqual([]);
  });

  it.each<[string, Parameters<typeof newAttempt>[0], RegExp]>([
    ['the driver has no disks', { driver: new ProcessDriver({ bubblewrap: 'off' }) }, /the driver process keeps no disks$/],
    ['the node keeps no layers', { layers: 'this node keeps no layers' }, /this node keeps no layers$/],
    ['a folder is named', { files: ['lock', 'src'] }, /src is a folder of the tree$/],
    [
      'the guest does not end in order',
      { driver: driverWithDisks(() => Promise.reject(new CodedError('guest_unclean', 'it did not end'))) },
      /it did not end$/,
    ],
    ['the disk is not clean', { driver: driverWithDisks(emptyDisk) }, /its disk is no ext4$/],
    ['no VM comes up', { driver: { ...driverWithDisks(), boot: () => Promise.reject(new Error('no such luck')) } }, /no such luck$/],
  ])('is not kept where %s, which is told, and nothing is left locked', async (_what, over, message) => {
    const attempt = await newAttempt(over);
    expect(await attempt.prepare()).toEqual({ type: 'done' });
    expect((await attempt.told()).at(-1)).toMatch(message);
    for (const key of attempt.context.state.noLayer) {
      if (key === '') continue;
      const lock = await takeLayerLock(store.root, key, { signal: NEVER, timeoutMs: 0 });
      expect(lock).toBeDefined();
      lock?.release();
    }
    expect([attempt.context.state.layer, await store.list()]).toEqual([null, []]);
  });

  it('is given up with its attempt, and its VM goes', async () => {
    const attempt = await newAttempt({ setup: 'touch started; sleep 100' });
    const abort = new AbortController();
    const prepared = attempt.prepare(abort.signal);
    const workspace = join(attempt.context.paths.root, 'v1al/root/workspace');
    while (!(await readdir(workspace).catch((): string[] => [])).includes('started'))
      await new Promise((resolve) => setTimeout(resolve, 20));
    abort.abort();
    await expect(prepared).rejects.toThrow();
    expect([await attempt.told(), await store.list()]).toEqual([[], []]);
    expect((await readdir(attempt.context.paths.root)).filter((name) => name.startsWith('v'))).toEqual([]);
  });
});

describe('a VM for which a layer was prepared', { timeout: 60_000 }, () => {
  /** Boots on no layer: as told, or as if there were none. */
  const onLayers = (answer: 'boots' | 'vm_ended_at_boot' | 'vm_panicked_at_boot' | 'vm_boot_hung'): Driver => {
    const driver = driverWithDisks();
    return {
      ...driver,
      boot: ({ layer, ...spec }) =>
        layer === undefined || answer === 'boots'
          ? driver.boot(spec)
          : Promise.reject(new CodedError('boot_failed', 'it did not come up', { cause: new CodedError(answer, 'no reason') })),
    };
  };

  it('lies on it and is not set up, gets the tree over it, and lets go of it at its end', async () => {
    const { context, told, prepare } = await newAttempt({ driver: onLayers('boots') });
    await prepare();
    const key = context.state.layer?.key ?? '';
    expect(await boot(context, 'agent', 1)).toEqual({ type: 'done', isSetUp: true });
    const workspace = context.state.vm?.guestPaths.workspace ?? '';
    // What a layer would have there.
    await mkdir(join(workspace, 'made'));
    await writeFile(join(workspace, 'made/lock'), 'product\n');
    await writeFile(join(workspace, 'test.js'), 'product\n');
    await inject(context);
    expect((await readdir(workspace, { recursive: true })).sort()).toEqual(['lock', 'made', 'made/lock', 'src', 'src/a.js', 'test.js']);
    expect(await readFile(join(workspace, 'test.js'), 'utf8')).toBe(TREE['test.js']);
    expect((await told()).slice(2)).toEqual([
      `setup_layer_used: the VM lies on the layer ${key.slice(0, 12)}: its set-up is not run`,
      'setup_layer_replaced: 1 paths of the layer gave way to those of the tree',
    ]);
    expect((await store.list()).map(({ inUse }) => inUse)).toEqual([true]);
    await destroy(context);
    expect([context.state.layer, (await store.list()).map(({ inUse }) => inUse)]).toEqual([null, [false]]);
  });

  it.each(['vm_ended_at_boot', 'vm_panicked_at_boot'] as const)(
    'is booted without it where it ends on it, and the layer goes',
    async (end) => {
      const { context, told, prepare } = await newAttempt({ driver: onLayers(end) });
      await prepare();
      expect(await boot(context, 'agent', 1)).toEqual({ type: 'done' });
      expect((await told()).at(-1)).toMatch(/^setup_layer_none: .*it did not come up$/);
      expect([context.state.layer, await store.list()]).toEqual([null, []]);
      await destroy(context);
      // Nor is it built again by this attempt.
      await prepare();
      expect([context.state.layer, sealed.length]).toEqual([null, 1]);
    },
  );

  it('keeps the layer where its boot fails for another reason', async () => {
    const { context, prepare } = await newAttempt({ driver: onLayers('vm_boot_hung') });
    await prepare();
    await expect(boot(context, 'agent', 1)).rejects.toMatchObject({ code: 'boot_failed' });
    expect(await store.list()).toHaveLength(1);
    await context.state.layer?.close();
  });
});

describe('the set-up of a VM', { timeout: 60_000 }, () => {
  const OF_THE_AGENT = { reason: 'guest_out_of_memory', message: 'memory ran out while the agent ran' } as const;

  it('leaves what the agent ran out of where it succeeds, and has it no part in its own failure', async () => {
    for (const [setup, left] of [
      ['true', OF_THE_AGENT],
      ['exit 3', null],
    ] as const) {
      const { context } = await newAttempt({ setup, layers: 'none' });
      context.state.exhausted = OF_THE_AGENT;
      await boot(context, 'verify', 1);
      await setUp(context, 'verify', 1, NEVER);
      await destroy(context);
      expect(context.state.exhausted, setup).toEqual(left);
    }
  });
});

async function emptyDisk(): Promise<string> {
  const path = join(folder, 'empty');
  await (await open(path, 'w')).close();
  return path;
}

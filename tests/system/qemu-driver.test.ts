import { appendFile, chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { type BootFiles, findBootArtifacts, ImageStore, openBootFiles } from '@firecrew/rootfs';
import { type BootSpec, guestHealth, putTree, QemuDriver, type QemuDriverOptions, type Vm } from '@firecrew/vmm';
import { cgroupStandIn, type DriverRig, driverCases, shareVm, shell, withVm } from '@firecrew/vmm/testing';
import { packTree } from '@firecrew/workspace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleGuestProgram } from './support/guest-programs.ts';
import { vmSpec } from './support/vm-spec.ts';
import { type TestVmStore, testVmStore } from './support/vm-store.ts';

/** Time for a boot and what is done in it, in `ms`: emulation on a busy machine takes ten times as long as on an idle one. */
const VM_TEST_MS = 170_000;
const isRoot = process.getuid?.() === 0;
/** VMs run as an account of their own where this test may give them one. */
const OWNER = isRoot ? { owner: { uid: 65_532, gid: 65_532 } } : {};

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

describe.skipIf(missing !== '')(`the qemu driver under emulation${missing}`, { timeout: VM_TEST_MS }, () => {
  let folder = '';
  let open: () => Promise<BootFiles>;
  let count = 0;

  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    const artifacts = await findBootArtifacts(store.root);
    open = () => openBootFiles(store.root, artifacts);
    folder = await mkdtemp(join(tmpdir(), 'fcq-'));
    await chmod(folder, 0o711);
  });
  afterAll(async () => {
    if (folder === '') return;
    // Every VM has removed its own folder.
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  });

  const driver = (options: Partial<QemuDriverOptions> = {}): QemuDriver =>
    new QemuDriver({ accelerator: 'tcg', openFiles: () => open(), ...options });
  const newSpec = async (): Promise<BootSpec> => {
    count += 1;
    return { ...vmSpec(`v${count}`, folder, { memoryMib: 512, diskMib: 1024 }), ...OWNER };
  };
  /** The payload in the place of the image: no shell and no agent is where they are looked for. */
  const withoutAgent = async (): Promise<BootFiles> => {
    const files = await open();
    return { ...files, payload: files.base };
  };
  const rig: DriverRig = {
    driver: { name: 'qemu', probe: () => driver().probe(), boot: (spec) => driver().boot(spec) },
    newSpec,
    broken: async () => ({ driver: driver({ openFiles: withoutAgent }), spec: await newSpec() }),
    cutEveryMs: 2000,
  };

  it('says what separates its guests, once a probe has booted, and what the host limits of them', async () => {
    const probe = await driver().probe();
    expect(probe).toMatchObject({ available: true, isolation: 'vm', detail: expect.stringContaining('probe boot') });
    expect(probe.detail).toMatch(
      /; (memory, swap, threads, processors of each VMM limited by a group of its own below \/|.*NOT LIMITED.* \(.+\))/,
    );
  });

  it.each(driverCases.filter((one) => one.needsOwnVm))('$name', ({ run }) => run(rig));

  describe('one VM after another case', () => {
    let places: Awaited<ReturnType<typeof cgroupStandIn>>;
    /** A folder stands for cgroup v2 here: this host may have none that can be used. */
    const limited = async (): Promise<QemuDriver> => {
      await mkdir(join(folder, 'cgroup'));
      places = await cgroupStandIn(join(folder, 'cgroup'));
      return driver({ cgroup: { required: true }, cgroupPlaces: places });
    };
    const shared = shareVm({ ...rig, driver: { ...rig.driver, boot: async (spec) => (await limited()).boot(spec) } });
    const groups = async (): Promise<string[]> => (await readdir(places.root)).filter((name) => name.startsWith('fc'));
    afterAll(async () => {
      expect(await groups()).toHaveLength(1);
      expect(await shared.close()).toMatchObject({ removed: true, left: [] });
      expect(await groups()).toEqual([]);
      await rm(join(folder, 'cgroup'), { recursive: true });
    }, VM_TEST_MS);
    it.each(driverCases.filter((one) => !one.needsOwnVm))('$name', ({ run }) => run(shared));

    it('a command has no other network than loopback, is not root, and cannot read what only the agent may', () =>
      withVm(shared, async ({ vm }) => {
        const { output } = await shell(
          vm,
          'ls /sys/class/net; id -u; cat /run/firecrew/agent.json /dev/vda 2>&1 | head -c 200; ls /run/firecrew 2>&1',
        );
        const [network, uid, ...refused] = output.trim().split('\n');
        expect([network, uid]).toEqual(['lo', '1000']);
        expect(refused.join(' ')).toMatch(/Permission denied/);
        expect(output).not.toMatch(/"secret"|hsqs/);
      }));

    it('the base is read-only for all VMs: what one writes over it is its own', () =>
      withVm(shared, async ({ vm }) => {
        const { output } = await shell(vm, 'grep -c overlay /proc/mounts; touch /bin/x 2>&1; grep "/opt/firecrew" /proc/mounts');
        expect(output).toMatch(/squashfs ro,/);
        expect(output).toMatch(/Permission denied/);
      }));

    it('its QEMU has joined a group of its own, with the limits of the VM, before it ran', () =>
      withVm(shared, async () => {
        const [name = ''] = await groups();
        const files = ['cgroup.procs', 'memory.max', 'memory.swap.max', 'pids.max', 'cpu.max'];
        const values = await Promise.all(files.map((file) => readFile(join(places.root, name, file), 'utf8')));
        expect(values).toEqual(['0\n', String((512 + 52 + 192 + 256) * 1024 * 1024), '0', '97', '150000 100000']);
      }));

    it('a kernel with cgroup v2 holds what starts in such a group to its limits', () =>
      withVm(shared, async ({ vm }) => {
        const programs = join(folder, 'programs');
        await mkdir(programs);
        await bundleGuestProgram('limit-groups', programs);
        await putTree(await vm.session(), vm.guestPaths.workspace, packTree(programs).stream);
        await rm(programs, { recursive: true });
        const program = join(vm.guestPaths.workspace, 'limit-groups.cjs');
        // A node agent stands in no group of a command.
        const command = `echo $$ > /sys/fs/cgroup/cgroup.procs; exec node ${program}`;
        const { output } = await shell(vm, `as-root '${command}'`, { timeoutMs: 60_000 });
        expect(JSON.parse(output)).toEqual({
          verdict: {
            parent: '/sys/fs/cgroup',
            files: ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max'],
            detail: 'memory, swap, threads, processors of each VMM limited by a group of its own below /sys/fs/cgroup',
            refused: false,
          },
          values: { 'memory.max': String(32 * 1024 * 1024), 'memory.swap.max': '0', 'pids.max': '8', 'cpu.max': '150000 100000' },
          // It is there from its first instruction, as the user of the VM, who cannot change what it may use.
          place: '0::/GROUP\n1000\n',
          rights: 1,
          threads: { code: 2, said: expect.stringContaining("can't fork"), alive: 7 },
          memory: { code: null, signal: 'SIGKILL', outOfMemory: true },
          removed: [true, true, false],
        });
      }));
  });

  it('a command that its kernel kills for want of memory is counted, and takes neither VM nor agent with it', () =>
    withVm(rig, async ({ vm }) => {
      // A bound of its own: a guest that is short of memory as a whole may be too slow to answer for a while.
      const bound = 'cd /sys/fs/cgroup; echo +memory > cgroup.subtree_control; mkdir small; echo 128M > small/memory.max';
      const hog = `as-root '${bound}; echo $PPID > small/cgroup.procs'; node -e 'for (const kept = []; ; ) kept.push(Buffer.alloc(1 << 24, 1))'`;
      const end = await shell(vm, hog, { timeoutMs: 60_000 });
      expect(end).toMatchObject({ exitCode: 137, memoryKills: expect.any(Number), diskRoomBytes: expect.any(Number) });
      expect(end.memoryKills).toBeGreaterThan(0);
      expect(await shell(vm, 'cat /proc/self/oom_score_adj')).toMatchObject({ output: '0\n', memoryKills: 0 });
    }));

  describe('a VM that does not come up, or ends', () => {
    const failure = async (options: Partial<QemuDriverOptions>): Promise<unknown> => {
      const spec = await newSpec();
      return await driver(options)
        .boot(spec)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
    };
    const causeOf = (error: unknown): unknown => (error instanceof CodedError ? error.cause : error);

    it('names a file of the store whose digest is wrong, and a kernel that is gone, before anything boots', async () => {
      const root = join(folder, 'store');
      await cp(rootOf(store), root, { recursive: true });
      const artifacts = await findBootArtifacts(root);
      const image = join(root, 'images', artifacts.image.slice('sha256:'.length));
      const [file = ''] = (await readdir(image)).filter((name) => name !== 'manifest.json');
      await chmod(join(image, file), 0o600);
      await appendFile(join(image, file), '!');
      const openFiles = (): Promise<BootFiles> => openBootFiles(root, artifacts);
      const wrong = await failure({ openFiles });
      expect(wrong).toMatchObject({ code: 'boot_failed', message: expect.stringContaining(`${file} of ${artifacts.image}`) });
      expect(causeOf(wrong)).toMatchObject({ code: 'image_digest_wrong', id: artifacts.image });
      await new ImageStore(root).remove(artifacts.kernel);
      expect(causeOf(await failure({ openFiles }))).toMatchObject({ code: 'kernel_missing', id: artifacts.kernel });
      await rm(root, { recursive: true });
    });

    it('says at which stage the guest gave up', async () => {
      const error = await failure({ openFiles: withoutAgent });
      expect(causeOf(error)).toMatchObject({ code: 'vm_ended_at_boot', message: expect.stringMatching(/guest_reset.*firecrew-init/s) });
    });

    it('tells a panic of its kernel from that', async () => {
      // No initrd that a kernel can unpack, and no other root.
      const openFiles = async (): Promise<BootFiles> => {
        const files = await open();
        return { ...files, initrd: files.payload };
      };
      expect(causeOf(await failure({ openFiles }))).toMatchObject({ code: 'vm_panicked_at_boot' });
    });

    it('says that its link never came up, once its agent runs', async () => {
      const agent = join(folder, 'silent.cjs');
      await writeFile(agent, 'setInterval(() => undefined, 1000);\n');
      const silent = rootOf(await testVmStore(agent));
      await rm(agent);
      const openFiles = async (): Promise<BootFiles> => openBootFiles(silent, await findBootArtifacts(silent));
      const error = await failure({ openFiles, bootTimeoutMs: 30_000 });
      expect(causeOf(error)).toMatchObject({ code: 'vm_link_never_up', message: expect.stringContaining('agent started as process') });
    });

    it('ends a boot that hangs at its deadline', async () => {
      const error = await failure({ bootTimeoutMs: 1000 });
      expect(causeOf(error)).toMatchObject({ code: 'vm_boot_hung', message: expect.stringContaining('within 1000 ms') });
    });

    it('says what QEMU said when it does not start', async () => {
      const error = await failure({ program: '/bin/false' });
      expect(causeOf(error)).toMatchObject({ code: 'qemu_failed' });
    });

    const ended = (command: string, cause: string) =>
      withVm(rig, async ({ vm, spec }) => {
        await guestHealth(await vm.session());
        await asRoot(vm, command);
        const exit = await vm.exited;
        expect(exit).toMatchObject({ cause, detail: expect.stringMatching(new RegExp(`^${cause}`)) });
        await expect(vm.session()).rejects.toMatchObject({ code: 'vm_exited', id: spec.vmId });
      });

    it('tells a power-off of the guest from a reset', () => ended('poweroff -f', 'guest_poweroff'));
    it('tells a panic of the guest from a reset', () => ended('echo c > /proc/sysrq-trigger', 'guest_panic'));
    it('says that memory ran out, where the agent was killed for it', () => ended(OUT_OF_MEMORY, 'guest_out_of_memory'));
  });
});

/** Has the kernel look for a process to kill, and the guest agent in the first place. */
const OUT_OF_MEMORY =
  'for at in /proc/[0-9]*; do echo -1000 > $at/oom_score_adj; done; echo 1000 > /proc/$PPID/oom_score_adj; echo f > /proc/sysrq-trigger; sleep 100';

function rootOf(found: TestVmStore): string {
  if ('missing' in found) throw new Error(found.missing);
  return found.root;
}

/** Runs a command as a guest would whose root was taken; its answer is lost with the VM. */
async function asRoot(vm: Vm, command: string): Promise<void> {
  await shell(vm, `as-root '${command}'`, { cwd: '/', timeoutMs: 10_000 }).catch(() => undefined);
}

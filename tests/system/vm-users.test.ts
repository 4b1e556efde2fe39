import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBootArtifacts, openBootFiles } from '@firecrew/rootfs';
import {
  type BootSpec,
  type Driver,
  type DriverProbe,
  type GuestOwner,
  ownUsers,
  putTree,
  QemuDriver,
  type Vm,
  VmUsers,
} from '@firecrew/vmm';
import { packTree } from '@firecrew/workspace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { vmSpec } from './support/vm-spec.ts';
import { testVmStore } from './support/vm-store.ts';

/** Time for two boots and what is done in them, in `ms`. */
const VM_TEST_MS = 170_000;
const PROBE_MS = 30_000;
const YAMA = '/proc/sys/kernel/yama/ptrace_scope';

const store = await testVmStore();
const isRoot = process.getuid?.() === 0;
const missing = 'missing' in store ? ` (not run: ${store.missing})` : isRoot ? '' : ' (not run: needs root)';

/** Gives up all rights but those of one user, and then says of each place how an attempt to open it ended. */
const PROBE = `
const { openSync, readdirSync } = require('node:fs');
const { connect } = require('node:net');
const [, uid, places] = process.argv;
process.setgroups([]); process.setgid(Number(uid)); process.setuid(Number(uid));
const dial = (path) => new Promise((resolve) => {
  const socket = connect(path, () => { socket.destroy(); resolve('open'); });
  socket.on('error', (error) => resolve(error.code));
});
const tried = (act) => { try { act(); return 'open'; } catch (error) { return error.code; } };
const ways = { read: (path) => tried(() => openSync(path, 'r')), write: (path) => tried(() => openSync(path, 'r+')), list: (path) => tried(() => readdirSync(path)), dial };
(async () => {
  const found = {};
  for (const [name, { way, path }] of Object.entries(JSON.parse(places))) found[name] = await ways[way](path);
  console.log(JSON.stringify(found));
})();
`;

type Places = Readonly<Record<string, { readonly way: 'read' | 'write' | 'list' | 'dial'; readonly path: string }>>;

describe.skipIf(missing !== '')(`the users of VMs${missing}`, { timeout: VM_TEST_MS }, () => {
  let folder = '';
  let driver: Driver;
  let probe: DriverProbe | undefined;
  const probeUids: number[] = [];
  const specs = new Map<string, BootSpec>();
  const vms = new Map<string, Vm>();

  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    const artifacts = await findBootArtifacts(store.root);
    folder = await mkdtemp(join(tmpdir(), 'fcu-'));
    await chmod(folder, 0o711);
    const openFiles = () => openBootFiles(store.root, artifacts);
    const users = new VmUsers({ firstUid: 2_000_000 + process.pid * 10, count: 3, vmRoots: [folder] });
    const qemu = new QemuDriver({ accelerator: 'tcg', openFiles, probeUsers: { take: noted(users) } });
    probe = await qemu.probe();
    const noting: Driver = {
      name: 'qemu',
      probe: () => qemu.probe(),
      boot: (spec) => {
        specs.set(spec.vmId, spec);
        return qemu.boot(spec);
      },
    };
    driver = ownUsers(noting, users);
    for (const name of ['agent', 'other']) vms.set(name, await driver.boot(vmSpec(name, folder, { memoryMib: 320, diskMib: 256 })));
  }, VM_TEST_MS);
  afterAll(async () => {
    for (const vm of vms.values()) expect(await vm.destroy()).toMatchObject({ removed: true, left: [] });
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  }, VM_TEST_MS);

  /** Users that say to whom they were lent. */
  function noted(users: VmUsers): VmUsers['take'] {
    return async (id) => {
      const user = await users.take(id);
      probeUids.push(user.owner.uid);
      return user;
    };
  }
  function vmOf(name: string): Vm {
    const vm = vms.get(name);
    if (vm === undefined) throw new Error(`there is no VM ${name}`);
    return vm;
  }
  function ownerOf(name: string): GuestOwner {
    const owner = specs.get(name)?.owner;
    if (owner === undefined) throw new Error(`VM ${name} has no user of its own`);
    return owner;
  }
  /** What a VM is on its host: memory and console of its VMM, its sockets, its disk and its configuration. */
  async function placesOf(name: string, rescue = false): Promise<Places> {
    const [pid] = await vmOf(name).pids();
    const at = (path: string): string => join(folder, name, path);
    return {
      memory: { way: 'write', path: `/proc/${pid}/mem` },
      environment: { way: 'read', path: `/proc/${pid}/environ` },
      console: { way: 'write', path: `/proc/${pid}/fd/1` },
      descriptors: { way: 'list', path: `/proc/${pid}/fd` },
      link: { way: 'dial', path: at(rescue ? 'l/r' : 'l/s') },
      monitor: { way: 'dial', path: at(rescue ? 'l/t' : 'l/q') },
      disk: { way: 'write', path: at('scratch.ext4') },
      configuration: { way: 'read', path: at(rescue ? 'rescue-initrd' : 'initrd') },
      sockets: { way: 'list', path: at('l') },
      folder: { way: 'list', path: at('') },
    };
  }
  async function tried(uid: number, places: Places): Promise<Readonly<Record<string, string>>> {
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', PROBE, String(uid), JSON.stringify(places)], {
      timeout: PROBE_MS,
    });
    // cast: the program above prints one text for each place
    return JSON.parse(stdout) as Record<string, string>;
  }
  const refused = (places: Places): Readonly<Record<string, unknown>> =>
    Object.fromEntries(Object.keys(places).map((name) => [name, expect.stringMatching(/^(EACCES|EPERM)$/)]));

  it('are lent to the boot that probes as well, which comes as far as guest-init', () => {
    expect(probe).toMatchObject({ available: true, detail: expect.stringContaining('probe boot') });
    expect(probeUids).toEqual([expect.any(Number)]);
  });

  it('are one for each VMM, and nobody else', async () => {
    const uids = await Promise.all(
      [...vms.values()].map(async (vm) => {
        const [pid = 0, ...more] = await vm.pids();
        expect(more).toEqual([]);
        return /^Uid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
      }),
    );
    const wanted = ['agent', 'other'].map((name) => Array(4).fill(ownerOf(name).uid).join('\t'));
    expect(uids).toEqual(wanted);
    expect(new Set(uids).size).toBe(2);
    expect([0, 65_534]).not.toContain(ownerOf('agent').uid);
  });

  it.each([
    ['agent', 'other'],
    ['other', 'agent'],
  ])('that of %s opens nothing of %s: no memory, socket, disk or console', async (from, to) => {
    const places = await placesOf(to);
    expect(await tried(ownerOf(from).uid, places)).toEqual(refused(places));
  });

  it('open what is their own, so that the places are those that count', async () => {
    const restricted = existsSync(YAMA) && readFileSync(YAMA, 'latin1').trim() !== '0';
    const { memory, console, monitor, sockets, folder: own, ...rest } = await placesOf('agent');
    const places = restricted || memory === undefined ? rest : { ...rest, memory };
    expect(await tried(ownerOf('agent').uid, places)).toEqual(Object.fromEntries(Object.keys(places).map((name) => [name, 'open'])));
    // A pipe is opened by its reader or writer; the monitor takes one connection, the folders give their names to nobody.
    expect(Object.keys({ console, monitor, sockets, own })).toHaveLength(4);
  });

  it('are another for the VM that reads the disk of a dead one, whose own opens nothing of it', async () => {
    const dead = ownerOf('agent');
    const { workspace } = vmOf('agent').guestPaths;
    await putTree(await vmOf('agent').session(), workspace, packTree(join(import.meta.dirname, 'support/guest')).stream);
    const { archive } = await vmOf('agent').rescue(workspace);
    let bytes = 0;
    if (typeof archive !== 'function') throw new TypeError('a rescue pours');
    await archive((part) => {
      bytes += part.length;
    });
    expect(bytes).toBeGreaterThan(0);
    const places = await placesOf('agent', true);
    const { uid } = await stat(join(folder, 'agent/scratch.ext4'));
    expect([dead.uid, ownerOf('other').uid, 0]).not.toContain(uid);
    expect(await tried(dead.uid, places)).toEqual(refused(places));
    expect(await tried(ownerOf('other').uid, places)).toEqual(refused(places));
    const others = await placesOf('other');
    expect(await tried(uid, others)).toEqual(refused(others));
  });
});

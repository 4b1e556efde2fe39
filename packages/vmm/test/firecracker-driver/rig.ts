import { randomUUID } from 'node:crypto';
import { chmod, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BootFiles, VerifiedFile } from '@firecrew/rootfs';
import { build } from 'esbuild';
import { parse } from 'yaml';
import {
  type BootSpec,
  FirecrackerDriver,
  type FirecrackerDriverOptions,
  type GuestOwner,
  type JailerSettings,
  removeGuestFolder,
} from '../../src/index.ts';
import { buildGuestPayload, type GuestPayload } from '../guest-payload.ts';
import type { SimulatorOptions } from './simulator/options.ts';

const DESCRIPTION = fileURLToPath(new URL('../../../../tests/cases/firecracker/firecracker.yaml', import.meta.url));
const SIMULATOR = fileURLToPath(new URL('./simulator/main.ts', import.meta.url));
/** A bundled package asks for modules of Node by `require`. */
const REQUIRE = "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);";

/** What a simulated host is set up with, for one test. */
export interface HostSetup {
  readonly simulator?: Partial<SimulatorOptions>;
  readonly driver?: Partial<FirecrackerDriverOptions>;
  /** Absent: VMs run without the jailer. */
  readonly jailer?: Omit<JailerSettings, 'program'> | undefined;
  readonly owner?: GuestOwner;
}

/** A driver with a simulated Firecracker, and specs for its VMs. */
export interface SimulatedHost {
  readonly driver: FirecrackerDriver;
  readonly firecracker: string;
  readonly jailer: string;
  readonly newSpec: (over?: Partial<BootSpec>) => BootSpec;
}

/** The programs and files of all simulated hosts of one test file. */
export class FirecrackerRig {
  readonly folder: string;
  readonly #payload: GuestPayload;
  #count = 0;

  private constructor(payload: GuestPayload) {
    this.#payload = payload;
    this.folder = payload.folder;
  }

  static async make(): Promise<FirecrackerRig> {
    const rig = new FirecrackerRig(await buildGuestPayload());
    await build({
      entryPoints: [SIMULATOR],
      outfile: join(rig.folder, 'simulator.mjs'),
      bundle: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      banner: { js: REQUIRE },
    });
    await writeFile(join(rig.folder, 'description.json'), JSON.stringify(parse(await readFile(DESCRIPTION, 'utf8'))));
    await mkdir(join(rig.folder, 'disks'));
    await chmod(join(rig.folder, 'disks'), 0o1777);
    await writeFile(join(rig.folder, 'vmlinux'), Buffer.from('\x7fELF and more', 'latin1'), { mode: 0o444 });
    for (const name of ['initrd', 'base', 'payload']) await writeFile(join(rig.folder, name), `${name} of every VM`, { mode: 0o444 });
    return rig;
  }

  /** Programs of their own, with the faults that are asked for. */
  async host({ simulator = {}, driver = {}, jailer, owner }: HostSetup = {}): Promise<SimulatedHost> {
    this.#count += 1;
    const programs = join(this.folder, `host${this.#count}`);
    await mkdir(programs, { mode: 0o755 });
    const options: SimulatorOptions = {
      version: '1.16.1',
      description: join(this.folder, 'description.json'),
      node: process.execPath,
      agentBundle: this.#payload.bundle,
      disks: join(this.folder, 'disks'),
      ...simulator,
    };
    const optionsFile = join(programs, 'options.json');
    await writeFile(optionsFile, JSON.stringify(options), { mode: 0o644 });
    const program = async (role: string): Promise<string> => {
      const text = `#!/bin/sh\nexec ${process.execPath} ${join(this.folder, 'simulator.mjs')} ${role} ${optionsFile} "$@"\n`;
      await writeFile(join(programs, role), text, { mode: 0o755 });
      return join(programs, role);
    };
    const [firecracker, jailerProgram] = [await program('firecracker'), await program('jailer')];
    return {
      firecracker,
      jailer: jailerProgram,
      driver: new FirecrackerDriver({
        openFiles: () => this.openFiles(),
        program: firecracker,
        kvmDevice: '/dev/null',
        ...(jailer === undefined ? {} : { jailer: { program: jailerProgram, ...jailer } }),
        ...driver,
      }),
      newSpec: (over) => this.newSpec({ ...(owner === undefined ? {} : { owner }), ...over }),
    };
  }

  newSpec(over: Partial<BootSpec> = {}): BootSpec {
    this.#count += 1;
    return {
      vmId: `vm-${this.#count}`,
      folder: join(this.folder, `v${this.#count}`),
      guestAgent: { node: process.execPath, bundle: this.#payload.bundle },
      bindPaths: [],
      path: '/usr/local/bin:/usr/bin:/bin',
      caBundle: null,
      limits: { memoryMib: 512, diskMib: 64 },
      allowUnisolated: false,
      attemptMarker: randomUUID(),
      onStream: () => undefined,
      onRefused: () => undefined,
      ...over,
    };
  }

  async openFiles(): Promise<BootFiles> {
    const names = ['vmlinux', 'initrd', 'base', 'payload'] as const;
    const opened = await Promise.all(names.map((name) => openFile(join(this.folder, name))));
    const [vmlinux, initrd, base, payload] = opened;
    if (vmlinux === undefined || initrd === undefined || base === undefined || payload === undefined) throw new TypeError('no file');
    const close = async (): Promise<void> => {
      for (const file of opened) await file.handle.close();
    };
    return { kernel: vmlinux, vmlinux, initrd, base, payload, path: '/usr/local/bin:/usr/bin:/bin', environment: {}, close };
  }

  async remove(): Promise<void> {
    // Guests leave closed and deep folders on their disks.
    await removeGuestFolder(join(this.folder, 'disks'));
    await this.#payload.remove();
  }
}

async function openFile(path: string): Promise<VerifiedFile> {
  const handle = await open(path, 'r');
  const { size } = await stat(path);
  return { name: path, path, handle, sizeBytes: size, sha256: '0'.repeat(64) };
}

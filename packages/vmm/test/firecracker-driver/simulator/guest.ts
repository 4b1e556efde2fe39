import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fstatSync, mkdirSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sandboxArguments } from './guest-sandbox.ts';
import { fileOfInitrd } from './initrd-file.ts';
import type { SimulatorOptions } from './options.ts';
import type { OpenDrive } from './vmm.ts';
import type { VsockDevice } from './vsock-device.ts';

const PANIC = '[    1.234567] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009';
/** Time that a kernel takes before anything is seen of it, in `ms`. */
const KERNEL_MS = 20;
const DISK_ID_BYTES = 16;

/** The machine that a guest finds. */
export interface GuestMachine {
  readonly options: SimulatorOptions;
  readonly commandLine: string;
  readonly initrd: number | undefined;
  readonly drives: readonly OpenDrive[];
  readonly vsock: VsockDevice | undefined;
  /** A line on the console. */
  readonly say: (line: string) => void;
  /** The reset that ends the VM. */
  readonly reset: () => void;
}

/** Stands for the guest: what guest-init does, with the real guest agent in a sandbox. A scratch disk's content is a folder beside it. */
export class Guest {
  readonly #machine: GuestMachine;
  readonly #from = performance.now();
  #agent: ChildProcess | undefined;
  #isStopping = false;
  #hasHalted = false;

  constructor(machine: GuestMachine) {
    this.#machine = machine;
  }

  async boot(): Promise<void> {
    const { options, vsock } = this.#machine;
    await delay(KERNEL_MS);
    if (options.guest === 'panics') return this.panic();
    if (options.guest === 'silent') {
      vsock?.activate();
      return this.#note('agent stands still');
    }
    try {
      const root = this.#mountScratch();
      const config = this.#takeConfig(root);
      vsock?.activate();
      await this.#listen(join(root, config.socketPath));
      this.#startAgent(root);
    } catch (error) {
      this.#fail('boot', error instanceof Error ? error.message : String(error));
    }
  }

  panic(): void {
    this.#agent?.kill('SIGKILL');
    this.#machine.say(PANIC);
    this.#machine.reset();
  }

  /** Ctrl-Alt-Del, for whoever listens. */
  pressKeys(): void {
    if (this.#machine.options.guest === 'staysAfterEnd') return;
    if (this.#hasHalted || this.#agent === undefined) {
      this.#machine.reset();
      return;
    }
    this.#note('agent asked to stop');
    this.#isStopping = true;
    this.#agent.kill('SIGTERM');
  }

  /** Finds the three disks by their serials, as they are on the command line, and gives the folder with the scratch's content. */
  #mountScratch(): string {
    const disks = ['base', 'payload', 'scratch'].map((role) => {
      const serial = this.#word(`${role}=serial:`);
      const found = this.#machine.drives.filter((drive) => drive.serial === serial);
      if (found.length !== 1) throw new Error(`${role}: ${found.length} disks have the serial ${serial}`);
      this.#note(`disks ${role} is ${found[0]?.id}`);
      return found[0];
    });
    const scratch = disks[2];
    if (scratch === undefined || scratch.readOnly) throw new Error('scratch: it is read-only');
    if (disks.some((disk) => disk !== scratch && disk?.readOnly !== true)) throw new Error('a shared disk is writable');
    return join(this.#machine.options.disks, diskId(scratch.fd));
  }

  #word(name: string): string {
    const prefix = `firecrew.${name}`;
    const words = this.#machine.commandLine.split(' ').filter((word) => word.startsWith(prefix));
    if (words.length !== 1) throw new Error(`options: ${words.length} words ${prefix}`);
    return words[0]?.slice(prefix.length) ?? '';
  }

  /** The configuration of the agent, as it lies in the VM's own part of the initrd. */
  #takeConfig(root: string): { readonly socketPath: string } {
    const { initrd } = this.#machine;
    if (initrd === undefined) throw new Error('config: there is no initrd');
    const bytes = Buffer.alloc(fstatSync(initrd).size);
    readSync(initrd, bytes, 0, bytes.length, 0);
    const text = fileOfInitrd(bytes, 'firecrew/agent.json');
    if (text === undefined) throw new Error('config: /firecrew/agent.json is missing');
    const config = JSON.parse(text.toString('utf8')) as { socketPath: string };
    const folder = join(root, dirname(config.socketPath));
    mkdirSync(folder, { recursive: true });
    // A sandbox has one user; a VM gives its commands another than its agent's.
    writeFileSync(join(folder, 'agent.json'), `${JSON.stringify({ ...config, user: null })}\n`, { mode: 0o600 });
    return config;
  }

  /** The relay of guest-init: each dial of the agent is a dial of the host; the end of one side is the end of both. */
  #listen(path: string): Promise<void> {
    const port = Number(this.#word('link=vsock:'));
    rmSync(path, { force: true });
    let live: Socket | undefined;
    const server = createServer({ pauseOnConnect: true }, (agent) => {
      live?.destroy();
      live = agent;
      agent.on('error', () => agent.destroy());
      this.#machine.vsock?.dialHost(port).then(
        (host) => {
          host.on('error', () => agent.destroy());
          agent.pipe(host);
          host.pipe(agent);
          agent.on('close', () => host.end());
          host.on('close', () => agent.destroy());
        },
        () => agent.destroy(),
      );
    });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(path, resolve);
    });
  }

  #startAgent(root: string): void {
    const { options } = this.#machine;
    const agent = spawn('bwrap', sandboxArguments(root, options), {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      env: { PATH: '/usr/bin:/bin' },
    });
    this.#agent = agent;
    for (const stream of [agent.stdout, agent.stderr]) {
      stream.on('data', (part: Buffer) => {
        for (const line of part.toString('utf8').split('\n')) if (line !== '') this.#note(`agent: ${line.slice(0, 400)}`);
      });
    }
    agent.on('exit', (code) => this.#onAgentEnd(code));
  }

  #onAgentEnd(code: number | null): void {
    const lived = Math.round(performance.now() - this.#from);
    if (this.#isStopping) this.#note(`agent stopped after ${lived} ms`);
    else if (code === 0) this.#note(`agent ended with status 0 after ${lived} ms`);
    else this.#note(`failed agent: ended with status ${code ?? 'unknown'} after ${lived} ms`);
    const { guest } = this.#machine.options;
    this.#hasHalted = guest === 'staysAfterEnd' || guest === 'haltsAfterEnd';
    if (!this.#hasHalted) this.#machine.reset();
  }

  #fail(stage: string, why: string): void {
    this.#note(`failed ${stage}: ${why}`);
    this.#machine.reset();
  }

  #note(text: string): void {
    this.#machine.say(`firecrew-init: ${Math.round(performance.now() - this.#from)} ms ${text}`);
  }
}

/** A disk is known by what is written in its first bytes, which no file system uses. */
function diskId(fd: number): string {
  const id = Buffer.alloc(DISK_ID_BYTES);
  readSync(fd, id, 0, id.length, 0);
  if (id.some((byte) => byte !== 0)) return id.toString('hex');
  const fresh = randomBytes(DISK_ID_BYTES);
  writeSync(fd, fresh, 0, fresh.length, 0);
  return fresh.toString('hex');
}

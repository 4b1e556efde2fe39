import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { type CpioEntry, writeCpio } from '@firecrew/rootfs';
import { AgentLink } from './agent-link.ts';

/** A disk of a VM; those without a serial are found by their label. */
export interface VmDisk {
  readonly path: string;
  readonly readOnly: boolean;
  readonly serial?: string;
}

export interface VmSpec {
  /** For its initrd and its socket, which are removed with it. */
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: readonly CpioEntry[];
  /** The words for guest-init. */
  readonly words: readonly string[];
  readonly disks: readonly VmDisk[];
}

/** Time for anything that is waited for, in `ms`: emulation on a busy machine is slow. */
const WAIT_MS = 90_000;
export const PORT = 'firecrew.link.0';

/** A VM under emulation, with the host's end of its link. */
export class TestVm {
  readonly #child: ChildProcess;
  readonly #server: Server;
  readonly #files: readonly string[];
  readonly #dials: Socket[] = [];
  readonly #ended: Promise<number | null>;
  #wake: (() => void)[] = [];
  /** Everything on its console so far. */
  console = '';

  private constructor(child: ChildProcess, server: Server, files: readonly string[]) {
    this.#child = child;
    this.#server = server;
    this.#files = files;
    this.#ended = once(child, 'close').then(([code]: unknown[]) => (typeof code === 'number' ? code : null));
    void this.#ended.then(() => this.#changed());
    const take = (part: Buffer): void => {
      this.console += part.toString('latin1');
      this.#changed();
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    server.on('connection', (socket: Socket) => {
      socket.on('error', () => undefined);
      this.#dials.push(socket);
      this.#changed();
    });
  }

  static async boot(spec: VmSpec): Promise<TestVm> {
    const socketPath = join(spec.folder, 'link');
    const initrd = join(spec.folder, 'initrd');
    writeFileSync(initrd, writeCpio(spec.initrd));
    const server = createServer().listen(socketPath);
    await once(server, 'listening');
    // Emulated on a busy machine the timer may come too late for the kernel's test of it, which then panics.
    const words = ['console=ttyS0', 'quiet', 'loglevel=3', 'panic=-1', 'reboot=k,force', 'no_timer_check', ...spec.words];
    const args = [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-nic', 'none', '-no-reboot'],
      ...['-machine', 'q35,accel=tcg,smm=off,hpet=off,usb=off,vmport=off,sata=off,smbus=off,graphics=off', '-cpu', 'max', '-m', '256M'],
      ...['-kernel', spec.kernel, '-initrd', initrd, '-append', words.join(' ')],
      ...['-device', 'virtio-serial-pci,max_ports=2', '-chardev', `socket,id=link,path=${socketPath},reconnect=1`],
      ...['-device', `virtserialport,chardev=link,name=${PORT}`],
      ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
      ...spec.disks.flatMap(({ path, readOnly, serial }, index) => [
        ...['-drive', `if=none,id=d${index},file=${path},format=raw,readonly=${readOnly ? 'on' : 'off'}`],
        ...['-device', `virtio-blk-pci,drive=d${index}${serial === undefined ? '' : `,serial=${serial}`}`],
      ]),
    ];
    const child = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    return new TestVm(child, server, [socketPath, initrd]);
  }

  /** The lines of guest-init, without their times. */
  get stages(): string[] {
    return this.console.split('\n').flatMap((line) => /firecrew-init: \d+ ms (.*?)\r?$/.exec(line)?.[1] ?? []);
  }

  /** The next connection of QEMU to the host, for orders to the agent. */
  async link(): Promise<AgentLink> {
    await this.until(() => this.#dials.length > 0);
    const [socket] = this.#dials.splice(0, 1);
    if (socket === undefined) throw new Error('another waits for the same link');
    return new AgentLink(socket);
  }

  /** Waits until the console holds what is asked for. */
  async until(isThere: (console: string) => boolean): Promise<void> {
    const until = performance.now() + WAIT_MS;
    while (!isThere(this.console)) {
      if (performance.now() > until || this.#child.exitCode !== null) throw new Error(`the VM did not come that far:\n${this.console}`);
      await this.#change(until);
    }
  }

  /** Settles when the VM has ended by itself, with the exit status of QEMU. */
  async end(): Promise<number | null> {
    const until = performance.now() + WAIT_MS;
    while (this.#child.exitCode === null) {
      if (performance.now() > until) throw new Error(`the VM did not end:\n${this.console}`);
      await this.#change(until);
    }
    return this.#ended;
  }

  /** Ends it at once, as a crash of the host does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
    for (const socket of this.#dials) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    for (const file of this.#files) rmSync(file, { force: true });
  }

  #change(until: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, until - performance.now());
      this.#wake.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #changed(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

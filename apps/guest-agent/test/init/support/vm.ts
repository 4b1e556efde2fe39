import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { type CpioEntry, writeCpio } from '@firecrew/rootfs';

/** A disk of a VM; those without a serial are found by their label. */
export interface VmDisk {
  readonly path: string;
  readonly readOnly: boolean;
  readonly serial?: string;
}

export interface VmSpec {
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: readonly CpioEntry[];
  /** The words for guest-init. */
  readonly words: readonly string[];
  readonly disks: readonly VmDisk[];
}

/** Time from start to end of a VM that does not serve, in `ms`: emulation on a busy machine is slow. */
export const VM_END_TIMEOUT_MS = 60_000;
export const PORT = 'firecrew.link.0';

/** A VM under emulation, with the host's end of its link. */
export class TestVm {
  readonly #child: ChildProcess;
  readonly #server: Server;
  readonly #ended: Promise<number | null>;
  /** Everything on its console so far. */
  console = '';
  /** The host's end, once QEMU has dialled. */
  readonly link: Promise<Socket>;

  private constructor(child: ChildProcess, server: Server, link: Promise<Socket>) {
    this.#child = child;
    this.#server = server;
    this.link = link;
    this.#ended = new Promise((resolve) => {
      child.once('close', (code) => resolve(code));
    });
    const take = (part: Buffer): void => {
      this.console += part.toString('latin1');
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
  }

  static async boot(spec: VmSpec): Promise<TestVm> {
    const socketPath = join(spec.folder, `link-${Date.now()}`);
    const initrd = `${socketPath}.initrd`;
    writeFileSync(initrd, writeCpio(spec.initrd));
    const server = createServer();
    const link = new Promise<Socket>((resolve) => server.once('connection', resolve));
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
    const words = ['console=ttyS0', 'quiet', 'loglevel=3', 'panic=-1', 'reboot=k,force', ...spec.words];
    const args = [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-nic', 'none', '-no-reboot'],
      ...['-machine', 'q35,accel=tcg,smm=off,hpet=off,usb=off,vmport=off,sata=off,smbus=off,graphics=off', '-cpu', 'max', '-m', '256M'],
      ...['-kernel', spec.kernel, '-initrd', initrd, '-append', words.join(' ')],
      ...['-device', 'virtio-serial-pci,max_ports=2', '-chardev', `socket,id=link,path=${socketPath}`],
      ...['-device', `virtserialport,chardev=link,name=${PORT}`],
      ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
      ...spec.disks.flatMap(({ path, readOnly, serial }, index) => [
        '-drive',
        `if=none,id=d${index},file=${path},format=raw,readonly=${readOnly ? 'on' : 'off'}`,
        '-device',
        `virtio-blk-pci,drive=d${index}${serial === undefined ? '' : `,serial=${serial}`}`,
      ]),
    ];
    return new TestVm(spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'pipe', 'pipe'] }), server, link);
  }

  /** The lines of guest-init, without their times. */
  get stages(): string[] {
    return this.console
      .split('\r\n')
      .join('\n')
      .split('\n')
      .flatMap((line) => /^firecrew-init: \d+ ms (.*)$/.exec(line)?.[1] ?? []);
  }

  /** Settles when the VM has ended by itself, with the exit status of QEMU. */
  async end(): Promise<number | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the VM did not end; its console:\n${this.console}`)), VM_END_TIMEOUT_MS);
    });
    return Promise.race([this.#ended, late]).finally(() => {
      clearTimeout(timer);
    });
  }

  /** Ends it at once, as a lost host does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
    this.#server.close();
    void this.link.then((socket) => socket.destroy());
  }
}

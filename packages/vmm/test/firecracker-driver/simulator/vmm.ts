import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ApiDescription } from './api-description.ts';
import { Fault, osError } from './fault.ts';
import { Guest } from './guest.ts';
import type { HttpAnswer, HttpRequest } from './http-connection.ts';
import type { SimulatorOptions } from './options.ts';
import { VsockDevice } from './vsock-device.ts';

const AFTER = 'The requested operation is not supported after starting the microVM.';
const BEFORE = 'The requested operation is not supported before starting the microVM.';
const BAD_VCPUS =
  'Machine config error: The number of vCPUs must be greater than 0, less than 32 and must be 1 or an even number if SMT is enabled.';
const BAD_MEMORY = 'Machine config error: The memory size (MiB) is either 0, or not a multiple of the configured page size.';
/** Requests that only a machine that has not started takes. */
const BEFORE_START = new Set(['boot-source', 'machine-config', 'cpu-config', 'vsock', 'entropy', 'serial', 'logger', 'metrics', 'balloon']);
const MAX_COMMAND_LINE_BYTES = 2048;

type Body = Readonly<Record<string, unknown>>;

/** One disk as it was opened. */
export interface OpenDrive {
  readonly id: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly fd: number;
  readonly serial: string;
}

/** Where the program is and what it was started with. */
export interface VmmPlace {
  readonly options: SimulatorOptions;
  readonly id: string;
  /** Folder that stands for `/`: the jail, or the host's own. */
  readonly root: string;
  /** Ends the program; nothing is unlinked. */
  readonly exit: (code: number, faults?: Body) => void;
}

/** The state of one simulated Firecracker. There is no way back to "not started". */
export class Vmm {
  readonly #place: VmmPlace;
  readonly #description: ApiDescription;
  readonly #minor: number;
  readonly #drives = new Map<string, OpenDrive>();
  #state: 'Not started' | 'Running' | 'Paused' = 'Not started';
  #boot: { readonly kernel: number; readonly initrd: number | undefined; readonly args: string } | undefined;
  #machine: Body = { vcpu_count: 1, mem_size_mib: 128, smt: false, track_dirty_pages: false, huge_pages: 'None' };
  #vsock: VsockDevice | undefined;
  #console = 1;
  #metrics: number | undefined;
  #guest: Guest | undefined;

  constructor(place: VmmPlace) {
    this.#place = place;
    this.#minor = Number(place.options.version.split('.')[1]);
    this.#description = new ApiDescription(place.options.description, this.#minor);
  }

  get isRunning(): boolean {
    return this.#state !== 'Not started';
  }

  async handle(request: HttpRequest): Promise<HttpAnswer> {
    try {
      return await this.#dispatch(request);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      return { status: 400, body: JSON.stringify({ fault_message: error.message }) };
    }
  }

  /** What guests and programs write where nobody waits: what is not read in time is lost. */
  writeMetrics(values: Body): void {
    if (this.#metrics !== undefined) this.#write(this.#metrics, `${JSON.stringify({ utc_timestamp_ms: Date.now(), ...values })}\n`);
  }

  panic(): void {
    this.#guest?.panic();
  }

  async #dispatch({ method, path, body }: HttpRequest): Promise<HttpAnswer> {
    const [, area = '', id = ''] = path.split('/');
    const operation = this.#description.operation(method, path);
    if (operation === undefined) throw new Fault(`Invalid request method and/or path: ${method} ${area}.`);
    if (method === 'GET') {
      if (body !== '') throw new Fault('GET request cannot have a body.');
      return { status: 200, body: JSON.stringify(this.#describe(area, path)) };
    }
    if (body === '') throw new Fault(`Empty ${method} request.`);
    const value = this.#parse(body, operation.body ?? {});
    if (id !== '') checkId(id, value[area === 'drives' ? 'drive_id' : 'id']);
    if (this.isRunning && (BEFORE_START.has(area) || (area === 'drives' && method === 'PUT'))) throw new Fault(AFTER);
    await this.#apply(`${method} ${area}`, value);
    return { status: 204, deprecated: area === 'vsock' && 'vsock_id' in value };
  }

  #describe(area: string, path: string): unknown {
    const { version } = this.#place.options;
    if (path === '/') return { id: this.#place.id, state: this.#state, vmm_version: version, app_name: 'Firecracker' };
    if (area === 'version') return { firecracker_version: version };
    if (area === 'machine-config') return this.#machine;
    throw new Fault(`The simulator has no answer to GET ${path}.`);
  }

  #parse(body: string, schema: Parameters<ApiDescription['fault']>[1]): Body {
    const wrong = (why: string): Fault =>
      new Fault(`An error occurred when deserializing the json body of a request: ${why} at line 1 column ${body.length}.`);
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      throw wrong('expected value');
    }
    const fault = this.#description.fault(value, schema);
    if (fault !== undefined) throw wrong(fault);
    // cast: every body of the description is an object, and the check has just said so
    return value as Body;
  }

  async #apply(request: string, value: Body): Promise<void> {
    switch (request) {
      case 'PUT logger':
        if (typeof value.log_path === 'string')
          this.#write(this.#openText(value.log_path), `[${this.#place.id}:main] Running Firecracker\n`);
        return;
      case 'PUT metrics':
        if (this.#metrics !== undefined) {
          throw new Fault(
            'Metrics error: Cannot initialize the metrics system due to bad user input: Reinitialization of metrics not allowed.',
          );
        }
        this.#metrics = this.#openText(String(value.metrics_path));
        return;
      case 'PUT serial':
        if (typeof value.serial_out_path === 'string') this.#console = this.#openText(value.serial_out_path);
        return;
      case 'PUT machine-config':
        return this.#setMachine(value);
      case 'PUT boot-source':
        return this.#setBoot(value);
      case 'PUT drives':
        return this.#setDrive(value);
      case 'PUT vsock':
        return this.#setVsock(value);
      case 'PUT entropy':
        return;
      case 'PUT actions':
        return this.#act(String(value.action_type));
      case 'PATCH vm':
        if (!this.isRunning) throw new Fault(BEFORE);
        this.#state = value.state === 'Paused' ? 'Paused' : 'Running';
        return;
      default:
        if (!this.isRunning && request.startsWith('PATCH')) throw new Fault(BEFORE);
        throw new Fault(`The simulator does not carry out ${request}.`);
    }
  }

  #setMachine(value: Body): void {
    const { vcpu_count: vcpus, mem_size_mib: memory, smt } = value;
    if (Number(vcpus) < 1 || Number(vcpus) > 32 || (smt === true && Number(vcpus) > 1 && Number(vcpus) % 2 === 1))
      throw new Fault(BAD_VCPUS);
    if (Number(memory) < 1 || (value.huge_pages === '2M' && Number(memory) % 2 === 1)) throw new Fault(BAD_MEMORY);
    this.#machine = { smt: false, track_dirty_pages: false, huge_pages: 'None', ...value };
  }

  #setBoot(value: Body): void {
    const kernel = this.#openFile(
      String(value.kernel_image_path),
      true,
      (why) => `Boot source error: The kernel file cannot be opened: ${why}`,
    );
    const initrd =
      value.initrd_path === undefined
        ? undefined
        : this.#openFile(
            String(value.initrd_path),
            true,
            (why) => `Boot source error: The initrd file cannot be opened due to invalid path or invalid permissions. ${why}`,
          );
    const args = String(
      value.boot_args ?? 'reboot=k panic=1 nomodule 8250.nr_uarts=0 i8042.noaux i8042.nomux i8042.dumbkbd swiotlb=noforce',
    );
    if (Buffer.byteLength(args) > MAX_COMMAND_LINE_BYTES)
      throw new Fault('Boot source error: The kernel command line is invalid: Command line string overflows.');
    this.#boot = { kernel, initrd, args };
  }

  #setDrive(value: Body): void {
    const id = String(value.drive_id);
    const path = value.path_on_host;
    const readOnly = value.is_read_only === true;
    const wrong = (why: string): string => `Drive config error: Unable to create the virtio block device: Virtio backend error: ${why}`;
    if (typeof path !== 'string')
      throw new Fault('Drive config error: Unable to create the virtio block device: Invalid configuration: neither path nor socket');
    if (value.is_root_device === true) throw new Fault('The simulator boots by an initrd and has no root device.');
    if (value.discard === true && readOnly) throw new Fault(wrong('Discard is not supported for read-only devices'));
    const fd = this.#openFile(path, readOnly, (why) => wrong(`Error manipulating the backing file: ${why} ${path}`));
    const { dev, rdev, ino } = fstatSync(fd, { bigint: true });
    this.#drives.set(id, { id, path: this.#resolve(path), readOnly, fd, serial: `${dev}${rdev}${ino}`.slice(0, 20) });
  }

  async #setVsock(value: Body): Promise<void> {
    await this.#vsock?.close();
    try {
      this.#vsock = await VsockDevice.bind(this.#resolve(String(value.uds_path)), this.#place.options.echoPort);
    } catch (error) {
      throw new Fault(
        `Vsock config error: Cannot create backend for vsock device: Error binding to the host-side Unix socket: ${osError(error)}`,
      );
    }
  }

  async #act(action: string): Promise<void> {
    if (action === 'InstanceStart') return this.#start();
    if (!this.isRunning) throw new Fault(BEFORE);
    if (action === 'FlushMetrics') this.writeMetrics({});
    else this.#guest?.pressKeys();
  }

  async #start(): Promise<void> {
    const { options, exit } = this.#place;
    if (this.isRunning) throw new Fault(AFTER);
    if (this.#boot === undefined) throw new Fault('Start microvm error: Cannot start microvm without kernel configuration.');
    const magic = Buffer.alloc(4);
    readSync(this.#boot.kernel, magic, 0, 4, 0);
    if (this.#minor < 17 && magic.toString('latin1') !== '\x7fELF') {
      throw new Fault(
        'Start microvm error: Cannot load kernel due to invalid memory configuration or invalid kernel image: Kernel Loader: failed to load ELF kernel image',
      );
    }
    if (options.api === 'endsAtStart') {
      exit(options.exitCode ?? 1);
      return new Promise(() => undefined);
    }
    this.#state = 'Running';
    this.#guest = new Guest({
      options,
      commandLine: this.#boot.args,
      initrd: this.#boot.initrd,
      drives: [...this.#drives.values()],
      vsock: this.#vsock,
      say: (line) => this.#write(this.#console, `${line}\r\n`),
      reset: () => exit(0),
    });
    void this.#guest.boot();
  }

  #resolve(path: string): string {
    return this.#place.root === '/' ? path : join(this.#place.root, path);
  }

  #openFile(path: string, readOnly: boolean, words: (why: string) => string): number {
    try {
      const fd = openSync(this.#resolve(path), readOnly ? constants.O_RDONLY : constants.O_RDWR);
      if (fstatSync(fd).isFile()) return fd;
      closeSync(fd);
      throw Object.assign(new Error('no file'), { code: 'EISDIR' });
    } catch (error) {
      throw new Fault(words(osError(error)));
    }
  }

  #openText(path: string): number {
    return openSync(this.#resolve(path), constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK, 0o600);
  }

  #write(fd: number, text: string): void {
    try {
      writeSync(fd, text);
    } catch {
      // Full: lost, and nobody waits.
    }
  }
}

function checkId(fromPath: string, fromBody: unknown): void {
  if (!/^[A-Za-z0-9_]+$/.test(fromPath)) throw new Fault('API Resource IDs can only contain alphanumeric characters and underscores.');
  if (fromBody !== fromPath) throw new Fault('The id from the path does not match the id from the body!');
}

import { connect, createServer, type Server, type Socket } from 'node:net';

/** Connections of one device, at most: what is above is taken and closed at once. */
export const MAX_VSOCK_CONNECTIONS = 1023;
const FIRST_HOST_PORT = 2 ** 30;
const MAX_COMMAND_BYTES = 32;

/** The host's side of a vsock device: one socket for dials to the guest, and `<path>_<port>` of the host for dials of the guest. */
export class VsockDevice {
  readonly #path: string;
  readonly #server: Server;
  readonly #echoPort: number | undefined;
  readonly #open = new Set<Socket>();
  readonly #waiting: Socket[] = [];
  #isActive = false;
  #nextHostPort = FIRST_HOST_PORT;

  private constructor(path: string, echoPort: number | undefined) {
    this.#path = path;
    this.#echoPort = echoPort;
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      socket.on('error', () => socket.destroy());
      // Nobody looks at the device before its driver is up: such a dial waits, without a word.
      if (this.#isActive) this.#accept(socket);
      else this.#waiting.push(socket);
    });
  }

  /** Binds at once; the path must not exist. */
  static bind(path: string, echoPort?: number): Promise<VsockDevice> {
    const device = new VsockDevice(path, echoPort);
    return new Promise((resolve, reject) => {
      device.#server.once('error', reject);
      device.#server.listen(path, () => resolve(device));
    });
  }

  /** The guest's driver is up. */
  activate(): void {
    this.#isActive = true;
    for (const socket of this.#waiting.splice(0)) this.#accept(socket);
  }

  /** A dial of the guest; rejects when the host does not listen. */
  dialHost(port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      if (this.#open.size >= MAX_VSOCK_CONNECTIONS) return reject(new Error('too many connections'));
      const socket = connect(`${this.#path}_${port}`);
      socket.once('error', reject);
      socket.once('connect', () => {
        this.#hold(socket);
        resolve(socket);
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  #hold(socket: Socket): void {
    this.#open.add(socket);
    socket.on('close', () => this.#open.delete(socket));
  }

  #accept(socket: Socket): void {
    if (this.#open.size >= MAX_VSOCK_CONNECTIONS) {
      socket.destroy();
      return;
    }
    this.#hold(socket);
    let head = Buffer.alloc(0);
    const onData = (part: Buffer): void => {
      head = Buffer.concat([head, part]);
      const end = head.indexOf(0x0a);
      if (end < 0 && head.length < MAX_COMMAND_BYTES) return;
      socket.off('data', onData);
      const port = /^connect\s+(\d{1,10})\s*$/i.exec(head.subarray(0, end).toString('latin1'))?.[1];
      // A bad command, and a port that nobody has: closed without a word.
      if (end < 0 || port === undefined || Number(port) !== this.#echoPort) {
        socket.destroy();
        return;
      }
      socket.write(`OK ${this.#nextHostPort}\n`);
      this.#nextHostPort += 1;
      socket.write(head.subarray(end + 1));
      socket.on('data', (more: Buffer) => socket.write(more));
      // The host's half-close is a full one for the guest.
      socket.on('end', () => socket.destroy());
    };
    socket.on('data', onData);
    socket.resume();
  }
}

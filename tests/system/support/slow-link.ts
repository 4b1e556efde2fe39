import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverFileSchema } from '@firecrew/protocol';

const REQUEST = /(?:^|\r\n\r\n)([A-Z]+) (\/\S*) HTTP\/1\.1\r\n([\s\S]*?\r\n\r\n)/g;
const FILE_PATH = /^\/v1\/node\/images\/[0-9a-f]{64}\/files\/([0-9a-f]{64})$/;

/** A request for a file of an artifact that went through. */
export interface SeenTransfer {
  readonly sha256: string;
  /** Its `Range` header; null for a request for the whole file. */
  readonly range: string | null;
}

/**
 * What stands between a node and its server, as a slow network does: all goes through, but of files of artifacts no more bytes than it is
 * told.
 */
export class SlowLink {
  readonly transfers: SeenTransfer[] = [];
  /** Bytes of answers to requests for files that went through. */
  passedBytes = 0;
  readonly #folder: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #held = new Set<() => void>();
  #allowedBytes: number;
  #upstream = '';

  private constructor(folder: string, allowedBytes: number) {
    this.#folder = folder;
    this.#allowedBytes = allowedBytes;
    this.#server = createServer((socket) => void this.#relay(socket).catch(() => socket.destroy()));
  }

  static async start(allowedBytes: number): Promise<SlowLink> {
    const link = new SlowLink(await mkdtemp(join(tmpdir(), 'fcs-link-')), allowedBytes);
    await new Promise<void>((resolve) => link.#server.listen(0, '127.0.0.1', resolve));
    const { port } = link.#server.address() as AddressInfo;
    const file = { pid: 1, startTicks: '1', bootId: '1', homeId: '1', version: '1', generation: 1, url: `http://127.0.0.1:${port}` };
    await writeFile(join(link.#folder, 'server.json'), JSON.stringify(serverFileSchema.parse(file)));
    return link;
  }

  /** The file for a node that is to go through here, to the server that writes `serverFile`. */
  nodeServerFile(serverFile: string): string {
    this.#upstream = serverFile;
    return join(this.#folder, 'server.json');
  }

  /** Whether a transfer is held back now. */
  get isHolding(): boolean {
    return this.#held.size > 0;
  }

  /** Lets that many more bytes of files through. */
  allow(bytes: number): void {
    this.#allowedBytes += bytes;
    for (const goOn of [...this.#held]) goOn();
  }

  async stop(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #relay(near: Socket): Promise<void> {
    const { hostname, port } = new URL(serverFileSchema.parse(JSON.parse(await readFile(this.#upstream, 'utf8'))).url);
    const far = connect({ host: hostname, port: Number(port) });
    let isTransfer = false;
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    near.on('data', (data) => {
      for (const [, , path = '', head = ''] of data.toString('latin1').matchAll(REQUEST)) {
        const sha256 = FILE_PATH.exec(path)?.[1];
        isTransfer = sha256 !== undefined;
        if (sha256 !== undefined) this.transfers.push({ sha256, range: /^range: (.*)\r$/im.exec(head)?.[1] ?? null });
      }
      far.write(data);
    });
    far.on('data', (data) => (isTransfer ? this.#pass(data, far, near) : near.write(data)));
  }

  /** Passes on what is allowed; the rest waits, and the connection with it. */
  #pass(data: Buffer, far: Socket, near: Socket): void {
    const now = data.subarray(0, Math.max(0, this.#allowedBytes - this.passedBytes));
    this.passedBytes += now.length;
    near.write(now);
    if (now.length === data.length) return;
    far.pause();
    const goOn = (): void => {
      this.#held.delete(goOn);
      far.resume();
      this.#pass(data.subarray(now.length), far, near);
    };
    this.#held.add(goOn);
    near.once('close', () => this.#held.delete(goOn));
  }
}

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { until } from './until.ts';

/** One thing an agent told the world outside. */
export interface Sighting {
  /** Monotonic time of arrival, in `ms`. */
  readonly atMs: number;
  /** `turnId.attempt.epoch`, as the agent's environment says. */
  readonly marker: string;
  readonly what: string;
}

/**
 * A server outside every sandbox that agents reach through the egress proxy: it always reads and notes what arrives when. A
 * connection that sends `MARKER WHAT` lines is noted line by line; `MARKER ?GATE` is answered with `open` or `shut`.
 */
export class Witness {
  readonly sightings: Sighting[] = [];
  readonly #gates = new Set<string>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#serve(socket));

  static async start(): Promise<Witness> {
    const witness = new Witness();
    await new Promise<void>((resolve) => witness.#server.listen(0, '127.0.0.1', resolve));
    return witness;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** What a mission needs in `egress` to reach this server. */
  get egress() {
    return { allow: [`localhost:${this.port}/tcp`], addressRules: [{ host: 'localhost', addresses: ['127.0.0.1'] }] };
  }

  /** Lets agents that wait at a gate go on. */
  open(gate: string): void {
    this.#gates.add(gate);
  }

  /** What was told of `what`, in the order of arrival. */
  saw(what: string): Sighting[] {
    return this.sightings.filter((item) => item.what === what);
  }

  async waitFor(what: string, count = 1): Promise<Sighting> {
    return await until(`"${what}" at the witness`, () => this.saw(what)[count - 1]);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setEncoding('utf8');
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
    let held = '';
    socket.on('data', (part: string) => {
      held += part;
      const lines = held.split('\n');
      held = lines.pop() ?? '';
      for (const line of lines) this.#note(socket, line);
    });
  }

  #note(socket: Socket, line: string): void {
    const [marker = '', what = ''] = line.split(' ');
    if (what.startsWith('?')) socket.write(this.#gates.has(what.slice(1)) ? 'open\n' : 'shut\n');
    else this.sightings.push({ atMs: performance.now(), marker, what });
  }
}

/** The program that agents speak to the witness with, placed beside them as an agent file. */
export const WITNESS_PROGRAM = `
import { connect } from 'node:net';
const [port, verb, what] = process.argv.slice(2);
const marker = process.env.FIRECREW_ATTEMPT;
const proxy = new URL(process.env.HTTPS_PROXY);
const dial = () => new Promise((resolve, reject) => {
  const socket = connect(Number(proxy.port), proxy.hostname);
  let head = '';
  const onData = (part) => {
    head += part;
    if (!head.includes('\\r\\n\\r\\n')) return;
    socket.off('data', onData);
    if (/^HTTP\\/1.1 200/.test(head)) resolve(socket);
    else { socket.destroy(); reject(new Error(head)); }
  };
  socket.on('data', onData);
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('closed: ' + head)));
  socket.write('CONNECT localhost:' + port + ' HTTP/1.1\\r\\nHost: localhost:' + port + '\\r\\n\\r\\n');
});
const retry = async (work) => {
  for (let tries = 0; ; tries += 1) {
    try { return await work(); } catch (error) { if (tries > 200) throw error; await new Promise((go) => setTimeout(go, 100)); }
  }
};
if (verb === 'say') await retry(async () => { const socket = await dial(); await new Promise((go) => socket.end(marker + ' ' + what + '\\n', go)); });
if (verb === 'wait' || verb === 'ask') for (;;) {
  const answer = await retry(async () => {
    const socket = await dial();
    return await new Promise((resolve, reject) => {
      socket.on('data', (part) => { resolve(String(part)); socket.destroy(); });
      socket.on('close', () => reject(new Error('closed')));
      socket.write(marker + ' ?' + what + '\\n');
    });
  });
  if (answer.startsWith('open')) break;
  if (verb === 'ask') process.exit(1);
  await new Promise((go) => setTimeout(go, 100));
}
if (verb === 'stream') {
  const socket = await retry(dial);
  socket.on('error', () => process.exit(0));
  setInterval(() => socket.write(marker + ' ' + what + '\\n'), 50);
}
`;

import type { Socket } from 'node:net';

/** The host's end of a link to the agent of the tests (`programs/agent.c`). One order at a time. */
export class AgentLink {
  readonly #socket: Socket;
  #bytes = Buffer.alloc(0);
  #wake: (() => void) | undefined;
  #ended = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    const end = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on('data', (part: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, part]);
      this.#wake?.();
    });
    socket.on('error', end).on('close', end);
  }

  get isUp(): boolean {
    return !this.#ended;
  }

  /** Sends an order and gives its answer. */
  async order(line: string): Promise<string> {
    this.tell(line);
    return String(await this.#answer());
  }

  /** Sends an order whose answer may not come. */
  tell(line: string): void {
    this.#socket.write(`${line}\n`);
  }

  /** Bytes there and back. */
  async echo(bytes: Buffer): Promise<Buffer> {
    this.#socket.write(`echo ${bytes.length}\n`);
    this.#socket.write(bytes);
    return this.#answer();
  }

  /** Ends the host's side as a lost host does. */
  drop(): void {
    this.#socket.destroy();
  }

  async #answer(): Promise<Buffer> {
    for (let end = -1; ; ) {
      end = this.#bytes.indexOf(0x0a);
      const length = Number(this.#bytes.subarray(0, end).toString());
      if (end >= 0 && this.#bytes.length > end + length) {
        const answer = this.#bytes.subarray(end + 1, end + 1 + length);
        this.#bytes = this.#bytes.subarray(end + 1 + length);
        return answer;
      }
      if (this.#ended) throw new Error(`the link ended after ${this.#bytes.length} bytes of an answer`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

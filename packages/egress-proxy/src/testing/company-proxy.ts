import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The login that the proxy asks for. */
export const PROXY_LOGIN = 'robot:word-of-the-company';
/** Another address of this host than the servers of tests have: nobody may be led to the address of the proxy. */
const ADDRESS = '127.0.0.2';

/** An HTTP proxy as companies have them: it wants a login, resolves names, and notes what it was asked for. */
export class CompanyProxy {
  /** Targets as they were asked for, refused ones too. */
  readonly asked: string[] = [];
  /** Addresses of names that this proxy alone knows. */
  readonly names = new Map<string, string>();
  /** Status line that it answers each request with in place of a tunnel; absent: it opens tunnels. */
  refusal: string | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));

  static async start(): Promise<CompanyProxy> {
    const proxy = new CompanyProxy();
    await once(proxy.#server.listen(0, ADDRESS), 'listening');
    return proxy;
  }

  get url(): string {
    return `http://${ADDRESS}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every connection in the middle of whatever goes over it. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    let head = '';
    const read = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      socket.pause();
      const target = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? '';
      this.asked.push(target);
      const login = `\r\nProxy-Authorization: Basic ${Buffer.from(PROXY_LOGIN).toString('base64')}\r\n`;
      if (this.refusal !== undefined) socket.end(`HTTP/1.1 ${this.refusal}\r\n\r\n`);
      else if (head.includes(login)) this.#connect(socket, target);
      else socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="company"\r\n\r\n');
    };
    this.#keep(socket).on('data', read);
  }

  #connect(socket: Socket, target: string): void {
    const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(target) ?? [];
    const upstream = this.#keep(connect({ host: this.names.get(host) ?? host, port: Number(port), allowHalfOpen: true }));
    upstream.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\nVia: 1.1 company\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.once('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    return socket;
  }
}

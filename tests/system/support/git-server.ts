import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TLS = fileURLToPath(new URL('./tls/', import.meta.url));
/** The certificate that the server shows, for `localhost`; it is its own authority. */
export const GIT_SERVER_CA = join(TLS, 'test-only-cert.pem');
export const GIT_SERVER_LOGIN = { username: 'crew', password: 'only-the-server-holds-this' } as const;

/** Serves the repositories of a folder over https with git's own back end, to those who give the login. */
export class GitServer {
  readonly #server: Server;
  readonly #backend = join(execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim(), 'git-http-backend');
  readonly #folder: string;
  /** Requests that came with the right login. */
  requests = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    const options = { cert: readFileSync(GIT_SERVER_CA), key: readFileSync(join(TLS, 'test-only-key.pem')) };
    this.#server = createServer(options, (request, response) => this.#serve(request, response));
  }

  static async start(folder: string): Promise<GitServer> {
    const server = new GitServer(folder);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  url(name: string): string {
    return `https://localhost:${this.port}/${name}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { username, password } = GIT_SERVER_LOGIN;
    if (request.headers.authorization !== `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('who are you?\n');
      return;
    }
    this.requests += 1;
    const url = new URL(request.url ?? '/', 'https://localhost');
    const child = spawn(this.#backend, {
      env: {
        PATH: process.env.PATH ?? '',
        GIT_PROJECT_ROOT: this.#folder,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        REMOTE_USER: username,
        REQUEST_METHOD: request.method ?? 'GET',
        PATH_INFO: decodeURIComponent(url.pathname),
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        ...(request.headers['content-encoding'] === undefined ? {} : { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
        ...(request.headers['git-protocol'] === undefined ? {} : { GIT_PROTOCOL: String(request.headers['git-protocol']) }),
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    request.pipe(child.stdin);
    child.stdin.on('error', () => undefined);
    const parts: Buffer[] = [];
    child.stdout.on('data', (part: Buffer) => parts.push(part));
    child.once('close', () => answer(Buffer.concat(parts), response));
  }
}

/** Turns the answer of a CGI program into one of HTTP. */
function answer(bytes: Buffer, response: ServerResponse): void {
  const end = bytes.indexOf('\r\n\r\n');
  let status = 200;
  for (const line of bytes.toString('latin1', 0, Math.max(0, end)).split('\r\n')) {
    const [name, ...rest] = line.split(': ');
    if (name?.toLowerCase() === 'status') status = Number.parseInt(rest.join(': '), 10);
    else if (name !== undefined && name !== '') response.setHeader(name, rest.join(': '));
  }
  response.writeHead(end < 0 ? 500 : status).end(bytes.subarray(end + 4));
}

import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Harness, makeClient, startHarness } from '../harness.ts';
import type { CaseEnd, EgressCase } from './case-format.ts';

const CERT = fileURLToPath(new URL('../tls/test-only-cert.pem', import.meta.url));
const KEY = fileURLToPath(new URL('../tls/test-only-key.pem', import.meta.url));
const CLIENT_TIMEOUT_MS = 60_000;
const INDEX = 'api.example.test';
const FILES = 'files.pkg.example.test';
/** Packages of the large install. */
const PACKAGES = 1000;

interface Ended {
  readonly code: number | string;
  readonly output: string;
}

/** One client as the cases name it: what it is asked for, what the site answers, how it is run and what must hold afterwards. */
interface RealClient {
  readonly program: string;
  /** Whether it is there and works; a shim of a version manager may be there without a program behind it. */
  readonly probe: readonly string[];
  prepare(folder: string): RequestListener;
  readonly args: (folder: string) => readonly string[];
  readonly env?: (folder: string) => Record<string, string>;
  readonly cwd?: string;
  /** Throws where the client did not get what it asked for. */
  readonly got?: (folder: string, ended: Ended) => void;
}

function run(program: string, args: readonly string[], cwd: string, env: Record<string, string>): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env: { PATH: process.env.PATH ?? '', ...env }, timeout: CLIENT_TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 };
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? 'failed'), output: `${stdout}${stderr}` }),
    );
  });
}

/** Answers requests by path; what is not there is 404. */
function pages(found: Readonly<Record<string, string | Buffer>>): RequestListener {
  return (request, response) => {
    const body = found[(request.url ?? '').split('?')[0] ?? ''];
    response.writeHead(body === undefined ? 404 : 200, {
      'content-type': request.url?.endsWith('/') === true ? 'text/html' : 'application/octet-stream',
    });
    response.end(body ?? 'nothing is here');
  };
}

/** Files below a folder, as a web server without any knowledge of them would give them. */
function filesOf(root: string): RequestListener {
  return (request, response) => {
    const path = join(root, decodeURIComponent(new URL(request.url ?? '', 'https://x').pathname));
    try {
      const isFile = path.startsWith(root) && statSync(path).isFile();
      response.writeHead(isFile ? 200 : 404);
      response.end(isFile ? readFileSync(path) : undefined);
    } catch {
      response.writeHead(404).end();
    }
  };
}

/** A gzip tar of files, made by the system's tar. */
function tarball(folder: string, name: string, files: Readonly<Record<string, string>>): Buffer {
  const root = join(folder, `made-${name}`);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const file = join(folder, `${name}.tgz`);
  execFileSync('tar', ['-czf', file, '-C', root, ...new Set(Object.keys(files).map((path) => path.split('/')[0] ?? path))]);
  return readFileSync(file);
}

const GIT: RealClient = {
  program: 'git',
  probe: ['--version'],
  prepare(folder) {
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.test', ...args], {
        cwd,
        env: { PATH: process.env.PATH ?? '', HOME: folder, GIT_CONFIG_NOSYSTEM: '1' },
        stdio: 'ignore',
      });
    mkdirSync(join(folder, 'work'));
    git(join(folder, 'work'), 'init');
    writeFileSync(join(folder, 'work/a.txt'), 'one\n');
    git(join(folder, 'work'), 'add', '.');
    git(join(folder, 'work'), 'commit', '-m', 'one');
    git(folder, 'clone', '--bare', 'work', 'site/repo.git');
    git(join(folder, 'site/repo.git'), 'update-server-info');
    return filesOf(join(folder, 'site'));
  },
  args: () => ['clone', `https://${INDEX}/repo.git`, 'cloned'],
  env: () => ({ GIT_SSL_CAINFO: CERT, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' }),
  got: (folder) => void readFileSync(join(folder, 'cloned/a.txt')),
};

const PYTHON: RealClient = {
  program: 'python3',
  probe: ['--version'],
  prepare: () => pages({ '/': 'hello' }),
  args: () => ['-c', `import urllib.request as u; print(u.urlopen('https://${INDEX}/').read())`],
  env: () => ({ SSL_CERT_FILE: CERT }),
  got: (_folder, { output }) => {
    if (!output.includes('hello')) throw new Error(`python3 printed ${output}`);
  },
};

const WHEEL = `import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as z:
    z.writestr('demo.py', '')
    z.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    z.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('demo-1.0.dist-info/RECORD', '')
`;
const WHEEL_NAME = 'demo-1.0-py3-none-any.whl';

const PIP: RealClient = {
  program: 'python3',
  probe: ['-m', 'pip', '--version'],
  prepare(folder) {
    execFileSync('python3', ['-c', WHEEL, join(folder, WHEEL_NAME)]);
    const wheel = readFileSync(join(folder, WHEEL_NAME));
    const digest = createHash('sha256').update(wheel).digest('hex');
    return pages({
      '/simple/demo/': `<!DOCTYPE html><html><body><a href="https://${FILES}/${WHEEL_NAME}#sha256=${digest}">${WHEEL_NAME}</a></body></html>`,
      [`/${WHEEL_NAME}`]: wheel,
    });
  },
  args: () => ['-m', 'pip', 'download', '--no-deps', '--no-cache-dir', '-d', 'got', '--index-url', `https://${INDEX}/simple`, 'demo'],
  env: () => ({ PIP_CERT: CERT, PIP_CONFIG_FILE: '/dev/null', PIP_DISABLE_PIP_VERSION_CHECK: '1', PIP_NO_INPUT: '1' }),
  got: (folder) => void readFileSync(join(folder, 'got', WHEEL_NAME)),
};

const NPM: RealClient = {
  program: 'npm',
  probe: ['--version'],
  prepare(folder) {
    const archive = tarball(folder, 'p', { 'package/package.json': '{"name":"p","version":"1.0.0"}', 'package/index.js': '' });
    const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
    const names = Array.from({ length: PACKAGES }, (_, at) => `p${at}`);
    const dependencies = Object.fromEntries(names.map((name) => [name, '1.0.0']));
    const locked = names.map((name) => [`node_modules/${name}`, { version: '1.0.0', resolved: `https://${INDEX}/${name}.tgz`, integrity }]);
    const top = { name: 'top', version: '1.0.0' };
    mkdirSync(join(folder, 'top'));
    writeFileSync(join(folder, 'top/package.json'), JSON.stringify({ ...top, dependencies }));
    const packages = { '': { ...top, dependencies }, ...Object.fromEntries(locked) };
    writeFileSync(join(folder, 'top/package-lock.json'), JSON.stringify({ ...top, lockfileVersion: 3, requires: true, packages }));
    return (_request, response) => void response.end(archive);
  },
  cwd: 'top',
  args: (folder) => ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier', '--cache', join(folder, 'cache')],
  env: () => ({
    npm_config_cafile: CERT,
    npm_config_registry: `https://${INDEX}/`,
    npm_config_userconfig: '/dev/null',
    npm_config_fetch_retries: '5',
  }),
  got: (folder) => void readFileSync(join(folder, `top/node_modules/p${PACKAGES - 1}/package.json`)),
};

const CARGO: RealClient = {
  program: 'cargo',
  probe: ['--version'],
  prepare(folder) {
    const manifest = '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n';
    const archive = tarball(folder, 'demo', { 'demo-1.0.0/Cargo.toml': manifest, 'demo-1.0.0/src/lib.rs': '' });
    const cksum = createHash('sha256').update(archive).digest('hex');
    mkdirSync(join(folder, 'top/src'), { recursive: true });
    mkdirSync(join(folder, 'cargo'));
    writeFileSync(join(folder, 'top/src/lib.rs'), '');
    writeFileSync(
      join(folder, 'top/Cargo.toml'),
      '[package]\nname = "top"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ndemo = "1.0.0"\n',
    );
    const source = `[source.crates-io]\nreplace-with = "site"\n[source.site]\nregistry = "sparse+https://${INDEX}/index/"\n`;
    writeFileSync(join(folder, 'cargo/config.toml'), source);
    return pages({
      '/index/config.json': JSON.stringify({ dl: `https://${FILES}/{crate}-{version}.crate` }),
      '/index/de/mo/demo': `${JSON.stringify({ name: 'demo', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false })}\n`,
      '/demo-1.0.0.crate': archive,
    });
  },
  cwd: 'top',
  args: () => ['fetch'],
  env: (folder) => ({
    CARGO_HOME: join(folder, 'cargo'),
    CARGO_HTTP_CAINFO: CERT,
    RUSTUP_HOME: process.env.RUSTUP_HOME ?? join(process.env.HOME ?? '', '.rustup'),
  }),
};

/** The archive of a module as Go takes it: without folders. It holds `go.mod` and `demo.go`, not packed. */
const GO_MODULE = Buffer.from(
  [
    'UEsDBBQAAAAAAAAAISgwXgrPGQAAABkAAAAfAAAAZXhhbXBsZS50ZXN0L2RlbW9AdjEuMC4wL2dvLm1vZG1vZHVsZSBleGFtcGxlLnRlc3QvZG',
    'VtbwpQSwMEFAAAAAAAAAAhKFdfp4sNAAAADQAAACAAAABleGFtcGxlLnRlc3QvZGVtb0B2MS4wLjAvZGVtby5nb3BhY2thZ2UgZGVtbwpQSwEC',
    'FAMUAAAAAAAAACEoMF4KzxkAAAAZAAAAHwAAAAAAAAAAAAAAgAEAAAAAZXhhbXBsZS50ZXN0L2RlbW9AdjEuMC4wL2dvLm1vZFBLAQIUAxQAAA',
    'AAAAAAIShXX6eLDQAAAA0AAAAgAAAAAAAAAAAAAACAAVYAAABleGFtcGxlLnRlc3QvZGVtb0B2MS4wLjAvZGVtby5nb1BLBQYAAAAAAgACAJsA',
    'AAChAAAAAAA=',
  ].join(''),
  'base64',
);

const GO: RealClient = {
  program: 'go',
  probe: ['version'],
  prepare(folder) {
    mkdirSync(join(folder, 'top'));
    writeFileSync(join(folder, 'top/go.mod'), 'module top\n\ngo 1.19\n\nrequire example.test/demo v1.0.0\n');
    return pages({
      '/example.test/demo/@v/v1.0.0.info': '{"Version":"v1.0.0"}',
      '/example.test/demo/@v/v1.0.0.mod': 'module example.test/demo\n',
      '/example.test/demo/@v/v1.0.0.zip': GO_MODULE,
    });
  },
  cwd: 'top',
  args: () => ['mod', 'download', 'example.test/demo'],
  env: (folder) => ({
    GOPROXY: `https://${INDEX}`,
    GOSUMDB: 'off',
    GOFLAGS: '-mod=mod -modcacherw',
    GOTOOLCHAIN: 'local',
    GOPATH: join(folder, 'go'),
    GOCACHE: join(folder, 'gocache'),
    SSL_CERT_FILE: CERT,
  }),
};

// biome-ignore lint/suspicious/noTemplateCurlyInString: the words of the cases
const P = 'HTTPS_PROXY=http://127.0.0.1:${PORT}';
/** The clients that the cases put into words, by those words. */
const CLIENTS: ReadonlyMap<string, RealClient> = new Map([
  [`${P} git clone https://api.example.test/repo.git`, GIT],
  [`${P} python3 -c "import urllib.request as u; u.urlopen('https://api.example.test/').read()"`, PYTHON],
  [`${P} pip download --no-deps demo (index on api.example.test, files on files.pkg.example.test)`, PIP],
  [`${P} npm ci (1,000 packages on api.example.test)`, NPM],
  [`${P} cargo fetch (sparse index and files host)`, CARGO],
  [`${P} go mod download (GOPROXY=https://api.example.test)`, GO],
]);

export const isRealClientCase = ({ input }: EgressCase): boolean => CLIENTS.has(input);

/** Runs a client as people run it, through the proxy, against a site of the test; a client that is not installed is not run. */
export async function runRealClientCase(entry: EgressCase): Promise<CaseEnd> {
  const client = CLIENTS.get(entry.input);
  if (client === undefined) return { run: false, why: 'nobody has made a program of these words' };
  const folder = mkdtempSync(join(tmpdir(), 'egress-client-'));
  const home = { HOME: folder, XDG_CACHE_HOME: join(folder, 'xdg') };
  try {
    const env = { ...home, ...client.env?.(folder) };
    if ((await run(client.program, client.probe, folder, env)).code !== 0)
      return { run: false, why: `there is no ${entry.input.split(' ')[1]}` };
    return await withSite(client.prepare(folder), entry, async (harness) => {
      const proxy = { HTTPS_PROXY: `http://127.0.0.1:${harness.port}` };
      const ended = await run(client.program, client.args(folder), join(folder, client.cwd ?? '.'), { ...env, ...proxy });
      if (harness.lines.some(({ verdict }) => verdict === 'denied' || verdict === 'malformed')) return { run: true, ended: 'deny' };
      if (ended.code !== 0) return { run: true, ended: `${client.program} ended with ${ended.code}: ${ended.output.slice(-500)}` };
      client.got?.(folder, ended);
      return { run: true, ended: harness.dialled.length > 0 ? 'allow' : 'nothing went through the proxy' };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function withSite(site: RequestListener, entry: EgressCase, work: (harness: Harness) => Promise<CaseEnd>): Promise<CaseEnd> {
  const server = createServer({ key: readFileSync(KEY), cert: readFileSync(CERT) }, site);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const harness = await startHarness({
    allow: entry.allowList,
    upstream: (socket) => {
      const onward = makeClient(port).socket;
      socket.on('close', () => onward.destroy());
      socket.pipe(onward).pipe(socket);
    },
  });
  try {
    return await work(harness);
  } finally {
    await harness.stop();
    server.closeAllConnections();
    server.close();
  }
}

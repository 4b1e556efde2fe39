import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fatalLine, programVersion } from '@firecrew/base';
import type { BootArtifacts, BootReferences } from '@firecrew/rootfs';
import { ProcessDriver, VmUsers } from '@firecrew/vmm';
import { destination, type Logger, pino } from 'pino';
import { ImageFetcher } from '../images/image-fetcher.ts';
import { ServerImages } from '../images/server-images.ts';
import { firecrackerDriverOf, firecrackerLaunchOf } from '../vm/firecracker-settings.ts';
import { qemuDriverOf, qemuLaunchOf } from '../vm/qemu-settings.ts';
import { VmSource } from '../vm/vm-source.ts';
import { vmUsersOf } from '../vm/vm-users.ts';
import { type NodeConfig, readNodeConfig } from './config.ts';
import { findServer } from './find-server.ts';
import { installPrograms } from './install-programs.ts';
import { KnownBackends } from './known-backends.ts';
import { NodeAgent } from './node-agent.ts';
import { runSelftest } from './run-selftest.ts';
import { ServerConnections } from './server-connections.ts';

const MIB = 1024 * 1024;

const USAGE = `firecrew node agent: runs attempts on this host for one server

usage: node main.js --config FILE [--vm-selftest]

  --config FILE   the configuration, JSON; see docs/operating.md
  --vm-selftest   boots one VM with each driver of microVMs, prints what came of it as JSON, and ends
`;

const { values } = parseArgs({
  options: { config: { type: 'string' }, 'vm-selftest': { type: 'boolean' }, help: { type: 'boolean' } },
});
if (values.help === true || values.config === undefined) {
  process.stderr.write(USAGE);
  process.exit(values.help === true ? 0 : 2);
}

try {
  const config = await readNodeConfig(values.config);
  if (values['vm-selftest'] === true) {
    const abort = new AbortController();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => abort.abort(new Error(`it was told to end (${signal})`)));
    const results = await runSelftest(config, abort.signal);
    abort.signal.throwIfAborted();
    process.stdout.write(`${JSON.stringify(results)}\n`);
    process.exit(0);
  }
  const log = pino({ level: config.logLevel, base: { role: 'node-agent', node: config.nodeId } }, destination({ dest: 2, sync: true }));
  const version = await installPrograms(join(config.home, 'versions'), sources());
  const connections = new ServerConnections(config.egressProxy, process.env);
  const backends = new KnownBackends();
  const fetchers = fetchersOf({ config, connections, backends, log, onChange: () => agent.capabilitiesChanged() });
  const qemu = qemuSourceOf(config, fetchers);
  const firecracker = firecrackerSourceOf(config, fetchers);
  const drivers = [processDriverOf(config), ...[qemu, firecracker].filter((source) => source !== null)];
  const agent: NodeAgent = new NodeAgent({
    config,
    connections,
    log,
    version,
    agentVersion: programVersion(new URL('../../package.json', import.meta.url)),
    drivers,
    backends,
    qemu,
    firecracker,
    fetchers: [...fetchers.values()],
  });
  await agent.start();
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      log.info({ signal }, 'node agent stops; its shims go on');
      agent.stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
} catch (error) {
  process.stderr.write(`${fatalLine(error, { role: 'node-agent', pid: process.pid, atMs: Date.now() })}\n`);
  process.exit(1);
}

/** Probed as the first of the users that attempts run as: what root may do says nothing about them. */
function processDriverOf({ bubblewrap, owners }: NodeConfig): ProcessDriver {
  return new ProcessDriver({ bubblewrap, ...(owners === null ? {} : { owner: { uid: owners.firstUid, gid: owners.firstUid } }) });
}

/** Fetchers by the root of their store: two drivers may boot from one store. */
type Fetchers = ReadonlyMap<string, ImageFetcher>;

interface FetcherParts {
  readonly config: NodeConfig;
  readonly connections: ServerConnections;
  readonly backends: KnownBackends;
  readonly log: Logger;
  readonly onChange: () => void;
}

function fetchersOf({ config, connections, backends, log, onChange }: FetcherParts): Fetchers {
  const { qemu, firecracker, imageFetch } = config;
  const settings = imageFetch.enabled ? [qemu, firecracker].filter((each) => each !== null) : [];
  const wantedIn = (store: string) => [
    ...(qemu?.store === store ? backends.bootReferences('qemu', qemu) : []),
    ...(firecracker?.store === store ? backends.bootReferences('firecracker', firecracker) : []),
  ];
  const fetcherOf = (store: string): ImageFetcher =>
    new ImageFetcher({
      store,
      wanted: () => wantedIn(store),
      originOf: (token) => new ServerImages(() => findServer(config), token, connections),
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      reserveBytes: imageFetch.diskReserveMib * MIB,
      log,
      clock: () => performance.now(),
      random: Math.random,
      onChange,
    });
  return new Map([...new Set(settings.map(({ store }) => store))].map((store) => [store, fetcherOf(store)]));
}

function qemuSourceOf(config: NodeConfig, fetchers: Fetchers): VmSource | null {
  const { qemu } = config;
  if (qemu === null) return null;
  const range = vmUsersOf(config);
  const users = range === null ? undefined : new VmUsers(range);
  const driverOf = (artifacts: BootArtifacts) => qemuDriverOf(qemuLaunchOf(qemu, artifacts), true, users);
  return new VmSource({ name: 'qemu', ...placeOf(qemu, fetchers), driverOf });
}

function firecrackerSourceOf({ firecracker, home }: NodeConfig, fetchers: Fetchers): VmSource | null {
  if (firecracker === null) return null;
  const driverOf = (artifacts: BootArtifacts) => firecrackerDriverOf(firecrackerLaunchOf(firecracker, artifacts), home);
  return new VmSource({ name: 'firecracker', ...placeOf(firecracker, fetchers), driverOf });
}

function placeOf(settings: BootReferences & { readonly store: string }, fetchers: Fetchers) {
  const { store } = settings;
  return { store, references: settings, fetcher: fetchers.get(store), clock: () => performance.now() };
}

/** The bundles of shim, credential broker and guest agent: beside the bundle of this program, or as the build of a checkout leaves them; and the Node that runs now. */
function sources() {
  const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
  const own = existsSync(at('./shim.mjs')) ? './' : '../../bundle/';
  const guestAgent = existsSync(at('./shim.mjs')) ? './guest-agent.cjs' : '../../../guest-agent/bundle/guest-agent.cjs';
  return { node: process.execPath, shim: at(`${own}shim.mjs`), broker: at(`${own}credential-broker.mjs`), guestAgent: at(guestAgent) };
}

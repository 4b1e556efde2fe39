import { access, chmod, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf, removeOldVersions } from '@firecrew/base';
import { HEALTH_EVERY_MS, type NodeMessage, type ServerMessage, type TurnSpec } from '@firecrew/protocol';
import type { Driver } from '@firecrew/vmm';
import type { Logger } from 'pino';
import { BrokerDesk, NO_HANDLES } from '../broker/broker-desk.ts';
import type { BrokerReport } from '../broker/broker-messages.ts';
import type { ImageFetcher } from '../images/image-fetcher.ts';
import { mayUseModelRoute, NodeRoutes } from '../model/node-routes.ts';
import { proxyOrderOf } from '../model/proxy-order.ts';
import { limitLaunch } from '../model/seat-budget.ts';
import { LAUNCH_FILE } from '../shim/shim-arguments.ts';
import { readSpec, type TurnPaths, turnFolderName, turnPaths, writeWhole } from '../turn-folder/turn-folder.ts';
import { firecrackerLaunchOf } from '../vm/firecracker-settings.ts';
import { layerLaunchOf } from '../vm/layer-settings.ts';
import { qemuLaunchOf } from '../vm/qemu-settings.ts';
import type { VmSource } from '../vm/vm-source.ts';
import { vmUsersOf } from '../vm/vm-users.ts';
import { CapabilityReports } from './capability-reports.ts';
import { collectLayers } from './collect-layers.ts';
import type { NodeConfig } from './config.ts';
import { DataClient } from './data-client.ts';
import { fetchInputs } from './fetch-inputs.ts';
import { findServer } from './find-server.ts';
import type { InstalledPrograms } from './install-programs.ts';
import type { KnownBackends } from './known-backends.ts';
import { type LaunchFacts, launchShim } from './launch-shim.ts';
import { listVms } from './list-vms.ts';
import { readHealth } from './read-health.ts';
import { findServerAddresses } from './server-addresses.ts';
import type { ServerConnections } from './server-connections.ts';
import { ServerLink } from './server-link.ts';
import { ShimList } from './shim-list.ts';
import { StartingTurn, type TurnKey } from './starting-turn.ts';
import { type KeeperHost, TurnKeeper } from './turn-keeper.ts';

/** Period of the look at what this host can do; a change is reported at once, and all of it at each connect. */
const PROBE_EVERY_MS = 60_000;

type Start = Extract<ServerMessage, { t: 'turn.start' }>;

export interface NodeAgentOptions {
  readonly config: NodeConfig;
  readonly connections: ServerConnections;
  readonly drivers: readonly Driver[];
  /** Those of the drivers that say what VMs are made of; null for one that this node does not boot with. */
  readonly qemu: VmSource | null;
  readonly firecracker: VmSource | null;
  /** Filled from what the server says. */
  readonly backends: KnownBackends;
  /** What gets what the image stores of this node lack, one for each store. */
  readonly fetchers: readonly ImageFetcher[];
  readonly version: InstalledPrograms;
  readonly agentVersion: string;
  readonly log: Logger;
}

/** The agent of one host: reports what it can do, starts a shim for each attempt, and keeps their turns. */
export class NodeAgent {
  readonly #options: NodeAgentOptions;
  readonly #link: ServerLink;
  readonly #keepers = new Map<string, TurnKeeper>();
  readonly #starting = new Map<string, StartingTurn>();
  readonly #broker: BrokerDesk;
  readonly #routes: NodeRoutes;
  readonly #reports: CapabilityReports;
  readonly #shims: ShimList;
  readonly #turns: string;
  readonly #tokens: string;
  #renewEveryMs = 20_000;
  #renewal = 0;
  #sentRenewals = new Map<number, number>();
  #timers: NodeJS.Timeout[] = [];
  #renewTimer: NodeJS.Timeout | undefined;

  constructor(options: NodeAgentOptions) {
    this.#options = options;
    const { home, owners, modelRoutes } = options.config;
    const { drivers, backends, agentVersion, log } = options;
    const onReport = (report: BrokerReport) => this.#routes.refused(report);
    this.#broker = new BrokerDesk({ home, program: options.version, isRoot: owners !== null, log, onReport });
    this.#routes = new NodeRoutes(modelRoutes, this.#broker, log);
    this.#reports = new CapabilityReports({ drivers, backends, agentVersion, modelRoutes, log, send: (message) => this.#send(message) });
    this.#shims = new ShimList(join(home, 'shims.json'), () => this.#keepers.values(), log);
    this.#turns = join(home, 'turns');
    this.#tokens = join(home, 'tokens');
    this.#link = new ServerLink({
      nodeId: options.config.nodeId,
      keyFile: options.config.keyFile,
      version: agentVersion,
      log,
      server: () => findServer(options.config),
      connections: options.connections,
      turns: () =>
        [...this.#keepers.values()].map((keeper) => ({
          ...keeper.key,
          state: keeper.hasEnded ? ('ended' as const) : ('running' as const),
          acked: keeper.acked,
        })),
      onMessage: (message) => this.#onMessage(message),
    });
  }

  /** Adopts what an earlier agent left, then connects. */
  async start(): Promise<void> {
    await mkdir(this.#turns, { recursive: true });
    await mkdir(this.#tokens, { recursive: true, mode: 0o700 });
    // Attempts of another user walk through to their own folder; everything else in there is private.
    for (const folder of [this.#options.config.home, this.#turns])
      await chmod(folder, this.#options.config.owners === null ? 0o700 : 0o711);
    this.#broker.setProxy(await proxyOrderOf(this.#options.config.egressProxy, process.env, this.#options.log));
    await this.#routes.tellAll();
    if (this.#routes.exist) await this.#broker.start();
    await this.#adopt();
    await this.#shims.write();
    await collectLayers(this.#options.config, this.#options.log);
    this.#link.start();
    this.#timers.push(setInterval(() => void this.#reportHealth(), HEALTH_EVERY_MS));
    this.#timers.push(setInterval(() => void this.#reports.report(false), PROBE_EVERY_MS));
  }

  /** Stops this agent; its shims go on and are adopted by the next one. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    clearInterval(this.#renewTimer);
    this.#link.stop();
    await Promise.all(this.#options.fetchers.map((fetcher) => fetcher.stop()));
    await Promise.all([...this.#keepers.values()].map((keeper) => keeper.stop()));
    this.#routes.stop();
    await this.#broker.stop();
  }

  async #onMessage(message: ServerMessage): Promise<void> {
    switch (message.t) {
      case 'welcome':
        return await this.#onWelcome(message);
      case 'turn.start':
        return void this.#startTurn(message);
      case 'turn.cancel':
        return await this.#onCancel(message);
      case 'lease.ack':
        return await this.#onLeaseAck(message);
      case 'events.ack':
        return this.#keeper(message)?.onEventsAck(message.seq);
      case 'outcome.ack':
        return await this.#keeper(message)?.onOutcomeAck();
      case 'error':
        this.#options.log.warn({ code: message.code, detail: message.message }, 'the server reports an error');
        if (message.code === 'tree_missing' || message.code === 'events_missing')
          for (const keeper of this.#keepers.values()) keeper.sendAgain();
        return;
      case 'challenge':
      case 'refused':
        return;
    }
  }

  async #onWelcome(message: Extract<ServerMessage, { t: 'welcome' }>): Promise<void> {
    for (const kept of message.keep) this.#keeper(kept)?.resume(kept.acked, kept.logOffset);
    for (const dropped of message.drop) await this.#keeper(dropped)?.supersede();
    this.#renewEveryMs = message.leaseRenewEveryMs;
    clearInterval(this.#renewTimer);
    this.#renewTimer = setInterval(() => void this.#renew(), this.#renewEveryMs);
    await this.#renew();
    await this.#reportHealth();
    this.#options.backends.replace(message.backends);
    this.#routes.tellUnknown(this.#options.backends.all.map(({ name }) => name));
    // A probe may boot a VM; nothing else of the link waits for it.
    void this.#reports.report(true);
    for (const fetcher of this.#options.fetchers) fetcher.linked(message.imagesToken);
  }

  /** Renews the leases of the shims that answer now. The term counts from when this was sent. */
  async #renew(): Promise<void> {
    const keepers = [...this.#keepers.values()];
    const answering = await Promise.all(keepers.map(async (keeper) => ((await keeper.answers()) ? keeper : undefined)));
    const starting = [...this.#starting.values()].filter((turn) => turn.reason === undefined).map((turn) => turn.key);
    const turns = [...starting, ...answering.flatMap((keeper) => (keeper === undefined ? [] : [keeper.key]))];
    if (turns.length === 0) return;
    this.#renewal += 1;
    const sentAtMs = clock();
    this.#sentRenewals.set(this.#renewal, sentAtMs);
    this.#link.send({ t: 'lease.renew', id: this.#renewal, turns });
  }

  async #onLeaseAck(message: Extract<ServerMessage, { t: 'lease.ack' }>): Promise<void> {
    for (const { egress, ...key } of message.egress ?? []) {
      this.#keeper(key)?.takeEgress(egress);
      const starting = this.#startingTurn(key);
      if (starting !== undefined) starting.egress = egress;
    }
    const sentAtMs = this.#sentRenewals.get(message.id);
    for (const id of this.#sentRenewals.keys()) if (id <= message.id) this.#sentRenewals.delete(id);
    if (sentAtMs === undefined) return;
    for (const key of message.renewed) this.#startingTurn(key)?.renewed(sentAtMs);
    for (const key of message.lost) this.#startingTurn(key)?.callOff('superseded');
    await Promise.all(message.renewed.map((key) => this.#keeper(key)?.renewed(sentAtMs)));
    await Promise.all(message.lost.map((key) => this.#keeper(key)?.supersede()));
  }

  async #onCancel(message: Extract<ServerMessage, { t: 'turn.cancel' }>): Promise<void> {
    const keeper = this.#keeper(message);
    if (keeper !== undefined) return message.reason === 'superseded' ? await keeper.supersede() : await keeper.cancel();
    const starting = this.#startingTurn(message);
    if (starting !== undefined) return starting.callOff(message.reason === 'superseded' ? 'superseded' : 'cancelled');
    if (message.reason === 'cancelled') {
      this.#send({ t: 'turn.refused', ...keyOf(message), code: 'cancelled', message: 'cancelled before it was started' });
    }
  }

  /** Makes the turn folder, fetches the inputs and starts the shim. An order that is repeated is answered with what is here. */
  async #startTurn(order: Start): Promise<void> {
    const { spec } = order;
    const name = turnFolderName(spec);
    const key = { turnId: spec.turnId, attempt: spec.attempt, epoch: spec.epoch };
    if (this.#keepers.has(name)) return void this.#send({ t: 'turn.accepted', ...key });
    if (this.#starting.has(name)) return;
    const starting = new StartingTurn(key, clock());
    this.#starting.set(name, starting);
    try {
      await this.#demandIsolation(spec);
      const paths = await this.#makeFolder(order, starting.signal);
      const { config, connections, log } = this.#options;
      const ofServer = await findServerAddresses(await findServer(config), connections, log);
      const serverAddresses = [...new Set([...ofServer, ...(order.ownAddresses ?? [])])];
      const launch = mayUseModelRoute(spec) ? await this.#routes.launchOf(spec.backend) : null;
      const model = limitLaunch(launch, spec.modelBudget);
      starting.signal.throwIfAborted();
      this.#launch(spec, paths, { renewedAtUptimeMs: starting.renewedAtMs, serverAddresses, model });
      const keeper = await this.#keep(spec, paths, order.token, starting.renewedAtMs);
      if (starting.egress !== undefined) keeper.takeEgress(starting.egress);
      this.#send({ t: 'turn.accepted', ...key });
      await this.#renew();
    } catch (error) {
      this.#options.log.error({ ...key, err: error, calledOff: starting.reason }, 'the turn could not be started');
      await this.#removeTurn(name);
      const code = starting.reason ?? (codeOf(error) === 'unisolated_not_allowed' ? 'unisolated_not_allowed' : 'workspace_unavailable');
      if (code !== 'superseded') this.#send({ t: 'turn.refused', ...key, code, message: messageOf(error).slice(0, 2000) });
    } finally {
      this.#starting.delete(name);
    }
  }

  async #demandIsolation(spec: TurnSpec): Promise<void> {
    const driver = this.#options.drivers.find((item) => item.name === spec.driver);
    const probe = await driver?.probe();
    if (probe?.isolation !== 'none' || spec.allowUnisolated) return;
    throw new CodedError('unisolated_not_allowed', `this node has no isolation for the ${spec.driver} driver (${probe.detail})`, {
      id: spec.turnId,
      action: 'Install bubblewrap, or allow it with --allow-unisolated.',
    });
  }

  async #makeFolder({ spec, token, inputs }: Start, signal: AbortSignal): Promise<TurnPaths> {
    const name = turnFolderName(spec);
    const paths = turnPaths(join(this.#turns, name));
    await rm(paths.root, { recursive: true, force: true });
    await mkdir(paths.inputs, { recursive: true, mode: 0o700 });
    await chmod(paths.root, 0o700);
    await writeFile(join(this.#tokens, name), token, { mode: 0o600 });
    await fetchInputs(this.#dataClient(spec, token), inputs, paths.inputs, signal, clock);
    await writeWhole(paths.spec, `${JSON.stringify(spec)}\n`);
    return paths;
  }

  #launch(spec: TurnSpec, paths: TurnPaths, found: Pick<LaunchFacts, 'renewedAtUptimeMs' | 'serverAddresses' | 'model'>): void {
    const { config, version, log, ...sources } = this.#options;
    const { image, variables } = this.#options.backends.find(spec.backend);
    const [qemu, firecracker] = [sources.qemu?.artifactsOf(image), sources.firecracker?.artifactsOf(image)];
    const launch = {
      contract: [...variables],
      callerPath: config.callerPath,
      bubblewrap: config.bubblewrap,
      qemu: config.qemu === null || qemu === undefined ? null : qemuLaunchOf(config.qemu, qemu),
      firecracker: config.firecracker === null || firecracker === undefined ? null : firecrackerLaunchOf(config.firecracker, firecracker),
      layers: layerLaunchOf(config.setupLayers, config.home),
      users: vmUsersOf(config),
      egressProxy: config.egressProxy,
      ...found,
    };
    launchShim(paths, version, launch, (error) => log.error({ turn: spec.turnId, err: error }, 'the shim could not be started'));
  }

  async #keep(spec: TurnSpec, paths: TurnPaths, token: string, renewedAtMs: number): Promise<TurnKeeper> {
    const host: KeeperHost = {
      log: this.#options.log,
      clock,
      send: (message) => this.#send(message),
      handles: mayUseModelRoute(spec) ? this.#broker : NO_HANDLES,
      onDone: (keeper) => void this.#forget(keeper),
    };
    const keeper = new TurnKeeper(spec, paths, this.#dataClient(spec, token), host, renewedAtMs);
    this.#keepers.set(turnFolderName(spec), keeper);
    keeper.start();
    await this.#shims.write();
    return keeper;
  }

  async #forget(keeper: TurnKeeper): Promise<void> {
    const name = turnFolderName(keeper.key);
    this.#keepers.delete(name);
    await rm(join(this.#tokens, name), { force: true });
    await this.#shims.write();
  }

  /** Takes over the turn folders of an earlier agent: living shims, ended ones, and those that died. */
  async #adopt(): Promise<void> {
    const names = await readdir(this.#turns);
    for (const name of names) {
      try {
        const paths = turnPaths(join(this.#turns, name));
        const spec = await readSpec(paths);
        const token = await readFile(join(this.#tokens, name), 'utf8');
        await access(join(paths.root, LAUNCH_FILE));
        await this.#keep(spec, paths, token, clock());
        this.#options.log.info({ turn: spec.turnId, attempt: spec.attempt }, 'turn adopted');
      } catch (error) {
        // Killed before it could launch a shim: the server orders the turn again.
        if (codeOf(error) === 'ENOENT') await this.#removeTurn(name);
        else this.#options.log.error({ folder: name, err: error }, 'a turn folder is not understood and is left alone');
      }
    }
    // An agent that was killed between the removal of a folder and that of its token left the token.
    for (const name of await readdir(this.#tokens)) if (!names.includes(name)) await rm(join(this.#tokens, name), { force: true });
    if (names.length === 0) await removeOldVersions(join(this.#options.config.home, 'versions'), this.#options.version.digest);
  }

  async #reportHealth(): Promise<void> {
    await this.#shims.write();
    const health = await readHealth(this.#options.config.home);
    this.#send({ t: 'health', health, vms: await listVms(this.#turns, (folder) => this.#keepers.get(folder)?.spec) });
  }

  /** Something that may change what this host can do has happened: it is looked at now, and reported where it did. */
  capabilitiesChanged(): void {
    void this.#reports.report(false);
  }

  #dataClient(spec: TurnSpec, token: string): DataClient {
    return new DataClient(() => findServer(this.#options.config), token, spec, this.#options.connections);
  }

  /** Removes a folder that no shim was started for, and what belongs to it. */
  async #removeTurn(name: string): Promise<void> {
    await rm(join(this.#turns, name), { recursive: true, force: true });
    await rm(join(this.#tokens, name), { force: true });
  }

  #startingTurn(key: TurnKey): StartingTurn | undefined {
    const starting = this.#starting.get(turnFolderName(key));
    return starting?.key.epoch === key.epoch ? starting : undefined;
  }

  #keeper(key: { turnId: string; attempt: number; epoch: number }): TurnKeeper | undefined {
    const keeper = this.#keepers.get(turnFolderName(key));
    return keeper?.key.epoch === key.epoch ? keeper : undefined;
  }

  #send(message: NodeMessage): boolean {
    return this.#link.send(message);
  }
}

const clock = () => uptime() * 1000;

function keyOf(key: { turnId: string; attempt: number; epoch: number }) {
  return { turnId: key.turnId, attempt: key.attempt, epoch: key.epoch };
}

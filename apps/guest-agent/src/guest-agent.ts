import { rm } from 'node:fs/promises';
import { messageOf } from '@firecrew/base';
import { GENERATION, type HealthReply } from '@firecrew/protocol';
import type { AgentConfig } from './agent-config.ts';
import { addToClock } from './clock/add-to-clock.ts';
import { ExecGroups } from './exec/exec-groups.ts';
import { ExecTable } from './exec/exec-table.ts';
import { spareSelf } from './exec/read-shortages.ts';
import { completeEtc, makeFolders } from './files/make-folders.ts';
import { SentTrees } from './files/sent-trees.ts';
import { LinkClient } from './link/link-client.ts';
import { LoopbackPump } from './link/loopback-pumps.ts';
import { type Services, serveRequest } from './link/serve-requests.ts';

/** Time for the answer to a shutdown to leave, in `ms`. */
export const LAST_ANSWER_MS = 100;

/** The agent of one VM: commands, files and tunnels for its host, from start to end. */
export class GuestAgent {
  readonly #client: LinkClient;
  readonly #execs: ExecTable;
  readonly #pumps: readonly LoopbackPump[];
  #closing: Promise<void> | undefined;

  private constructor(client: LinkClient, execs: ExecTable, pumps: readonly LoopbackPump[]) {
    this.#client = client;
    this.#execs = execs;
    this.#pumps = pumps;
  }

  /** Starts the listeners; the link is dialled by `run`. `note` gets lines for the console. */
  static async start(config: AgentConfig, note: (text: string) => void): Promise<GuestAgent> {
    // Where commands are another account's, this is the root of a VM of its own.
    if (config.user !== null) await spareSelf();
    await makeFolders(config);
    await completeEtc(config.etc);
    const session = (): LinkClient['session'] => client.session;
    // The listeners are there before the first exec, since a client whose first dial is refused does not try again.
    const proxy = await LoopbackPump.start(config.ports.proxy, { t: 'tunnel' }, session);
    const model = await LoopbackPump.start(config.ports.model, { t: 'model' }, session);
    for (const { state } of [proxy, model]) if (state.error !== null) note(state.error);
    const portOf = (pump: LoopbackPump): number | undefined => (pump.state.up ? pump.state.port : undefined);
    // Only in a VM commands are another user's; all that is beside the agent in a sandbox is not its to group.
    const groups = config.user === null ? undefined : ExecGroups.open(note);
    const execs = new ExecTable(config, { proxy: portOf(proxy), model: portOf(model) }, groups);
    const services: Services = {
      execs,
      trees: new SentTrees(),
      user: config.user,
      health: async (addClockMs) => {
        // A sandbox has the clock of its host, which is not its to set.
        if (addClockMs !== undefined && config.user !== null) await setClock(addClockMs, note);
        return health(proxy, model, execs);
      },
      shutdown: (forget) => {
        setTimeout(() => void agent.close(forget), LAST_ANSWER_MS);
      },
    };
    const client: LinkClient = new LinkClient(config, (stream, head) => serveRequest(stream, head, services), note);
    const agent = new GuestAgent(client, execs, [proxy, model]);
    return agent;
  }

  /** Serves the host until `close`. Rejects like `LinkClient.run`. */
  run(): Promise<void> {
    return this.#client.run();
  }

  /** Kills what runs, removes the folders, then ends listeners and link. */
  close(forget: readonly string[] = []): Promise<void> {
    this.#closing ??= this.#close(forget);
    return this.#closing;
  }

  async #close(forget: readonly string[]): Promise<void> {
    await this.#execs.close();
    for (const folder of forget) await rm(folder, { recursive: true, force: true });
    for (const pump of this.#pumps) pump.close();
    await this.#client.close();
  }
}

function health(proxy: LoopbackPump, model: LoopbackPump, execs: ExecTable): HealthReply {
  const clockMs = Math.max(0, Date.now());
  return { ok: true, generation: GENERATION, proxy: proxy.state, model: model.state, execs: execs.running, clockMs };
}

/** The host sees by the answer whether it was done, and asks again. */
async function setClock(addMs: number, note: (text: string) => void): Promise<void> {
  try {
    await addToClock(addMs);
    note(`${addMs} ms were added to the clock`);
  } catch (error) {
    note(`the clock could not be set: ${messageOf(error)}`);
  }
}

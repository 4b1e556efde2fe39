import { rm } from 'node:fs/promises';
import { messageOf } from '@firecrew/base';
import type { LinkSession, LinkStream } from '@firecrew/link';
import { GENERATION, type HealthReply } from '@firecrew/protocol';
import type { AgentConfig } from './agent-config.ts';
import { addToClock } from './clock/add-to-clock.ts';
import { ExecGroups } from './exec/exec-groups.ts';
import { ExecTable } from './exec/exec-table.ts';
import { spareSelf } from './exec/read-shortages.ts';
import { completeEtc, makeFolders } from './files/make-folders.ts';
import { SentTrees } from './files/sent-trees.ts';
import { LoopbackPump } from './link/loopback-pumps.ts';
import { type Services, serveRequest } from './link/serve-requests.ts';

/** What the services of an agent are opened with. */
export interface GuestServicesOptions {
  readonly config: AgentConfig;
  /** The live session, if there is one. */
  readonly session: () => LinkSession | undefined;
  /** The host asks the agent to end; the folders are removed when nothing runs any more. */
  readonly shutdown: (forget: readonly string[]) => void;
  /** Gets lines for the console. */
  readonly note: (text: string) => void;
}

/** All that an agent does for its host beside holding the link: commands, files, tunnels. */
export class GuestServices {
  readonly #services: Services;
  readonly #pumps: readonly LoopbackPump[];

  private constructor(services: Services, pumps: readonly LoopbackPump[]) {
    this.#services = services;
    this.#pumps = pumps;
  }

  /** Makes folders and files of the guest, and starts the listeners. */
  static async open({ config, session, shutdown, note }: GuestServicesOptions): Promise<GuestServices> {
    // Where commands are another account's, this is the root of a VM of its own.
    if (config.user !== null) await spareSelf();
    await makeFolders(config);
    await completeEtc(config.etc);
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
      shutdown,
    };
    return new GuestServices(services, [proxy, model]);
  }

  /** Serves one stream of the host. */
  serve(stream: LinkStream, head: unknown): Promise<void> {
    return serveRequest(stream, head, this.#services);
  }

  /** Kills what runs, removes the folders, then ends the listeners. */
  async close(forget: readonly string[]): Promise<void> {
    await this.#services.execs.close();
    for (const folder of forget) await rm(folder, { recursive: true, force: true });
    for (const pump of this.#pumps) pump.close();
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

import { statSync } from 'node:fs';
import { FirecrewClient } from '@firecrew/sdk';
import type { Home } from '../home/open-home.ts';
import { createFile, readText } from '../home/write-file.ts';
import { findServer } from '../server/find-server.ts';
import { IDLE_STOP_MS } from '../settings/settings.ts';
import { isIdle, type SeenUse, seeUse } from './decide-supervision.ts';
import { readProcesses } from './supervisor-state.ts';

/** Missions that are looked at for one that runs. */
const LOOK_AT = 500;

/** Sees when the services of a home are no longer wanted; a use is a touch of its file of last uses. */
export class IdleWatch {
  readonly #home: Home;
  readonly #idleStopMs: number;
  #lastUse: SeenUse | undefined;

  /** Its making is a use. */
  constructor(home: Home, idleStopMs = IDLE_STOP_MS) {
    this.#home = home;
    this.#idleStopMs = idleStopMs;
    createFile(home.paths.lastUse, '');
    this.#look();
  }

  /** Whether the home is gone, or was not used for its term while no mission ran. */
  async isOver(): Promise<boolean> {
    const { paths, homeId } = this.#home;
    // A home that was removed under us has nothing to serve.
    if (readText(paths.identity)?.includes(homeId) !== true) return true;
    const keep = readText(paths.keep) !== undefined;
    const idle = { keep, lastUseAtMs: this.#look().atMs, nowMs: performance.now(), idleStopMs: this.#idleStopMs, busy: false };
    if (!isIdle(idle)) return false;
    if (!(await this.#isBusy())) return true;
    this.#lastUse = undefined;
    return false;
  }

  #look(): SeenUse {
    const mark = statSync(this.#home.paths.lastUse, { throwIfNoEntry: false })?.mtimeMs;
    this.#lastUse = seeUse(this.#lastUse, mark, performance.now());
    return this.#lastUse;
  }

  async #isBusy(): Promise<boolean> {
    if (readProcesses(this.#home.paths).shims.length > 0) return true;
    const found = await findServer(this.#home);
    if (!found.ready) return false;
    const client = new FirecrewClient({ url: found.url, token: this.#home.token });
    const missions = await client.listMissions({ limit: LOOK_AT }).catch(() => undefined);
    return missions === undefined || missions.some((mission) => mission.state === 'running');
  }
}

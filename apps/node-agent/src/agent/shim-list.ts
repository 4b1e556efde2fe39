import type { Logger } from 'pino';
import { writeWhole } from '../turn-folder/turn-folder.ts';
import type { TurnKeeper } from './turn-keeper.ts';

/** The file that says which shims there are, for `firecrew status`. */
export class ShimList {
  readonly #file: string;
  readonly #keepers: () => Iterable<TurnKeeper>;
  readonly #log: Logger;
  #written: Promise<void> = Promise.resolve();

  constructor(file: string, keepers: () => Iterable<TurnKeeper>, log: Logger) {
    this.#file = file;
    this.#keepers = keepers;
    this.#log = log;
  }

  /** Writes those that there are now: one writer at a time, and a failure is no reason to refuse a turn. */
  async write(): Promise<void> {
    this.#written = this.#written
      .then(() => writeWhole(this.#file, `${JSON.stringify(this.#list())}\n`))
      .catch((error: unknown) => this.#log.warn({ err: error }, 'the list of shims could not be written'));
    await this.#written;
  }

  #list() {
    return [...this.#keepers()].flatMap(({ key, identity }) => {
      if (identity === undefined) return [];
      const { pid, startTicks, bootId } = identity;
      return [{ turnId: key.turnId, attempt: key.attempt, pid, startTicks, bootId }];
    });
  }
}

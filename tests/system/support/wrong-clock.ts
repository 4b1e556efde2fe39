import { readFileSync, writeFileSync } from 'node:fs';

/** The wall clock of processes that tests start: off by what is set here, also while they run. Their monotonic time stays as it is. */
export class WrongClock {
  readonly #file: string;

  /** `file` holds by how much it is off. */
  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  /** Arguments that give it to a Node process. */
  get arguments(): readonly string[] {
    const module = new URL(import.meta.url);
    module.searchParams.set('file', this.#file);
    return ['--import', module.href];
  }

  set(hours: number): void {
    writeFileSync(this.#file, String(hours * 3_600_000));
  }
}

// This module is what such a process loads before its program.
const file = new URL(import.meta.url).searchParams.get('file');
if (file !== null) {
  const now = () => performance.timeOrigin + performance.now() + Number(readFileSync(file, 'utf8'));
  globalThis.Date = new Proxy(Date, {
    construct: (target, values) => Reflect.construct(target, values.length === 0 ? [now()] : values) as Date,
    apply: () => new Date().toString(),
    get: (target, name) => (name === 'now' ? () => Math.floor(now()) : Reflect.get(target, name)),
  });
}

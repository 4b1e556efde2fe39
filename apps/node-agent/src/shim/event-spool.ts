import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import type { TurnEvent, TurnEventBody } from '@firecrew/protocol';

/** The attempt's events: one line each in `events.jsonl`, numbered from 1 without gaps. A line is written before `add` returns. */
export class EventSpool {
  readonly #fd: number;
  readonly #now: () => Date;
  #seq = 0;

  constructor(file: string, now: () => Date = () => new Date()) {
    this.#fd = openSync(file, 'ax', 0o600);
    this.#now = now;
  }

  get lastSeq(): number {
    return this.#seq;
  }

  /** Appends one event. Durable kinds are on the disk when this returns. */
  add(body: TurnEventBody): void {
    const event: TurnEvent = { seq: this.#seq + 1, at: this.#now().toISOString(), body };
    writeSync(this.#fd, `${JSON.stringify(event)}\n`);
    this.#seq += 1;
    if (DURABLE.has(body.kind)) fdatasyncSync(this.#fd);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** What the loss of a host may not take: trees, verdicts and the end. Audit lines are written before their tunnel opens, and reach the disk with the next of these. */
const DURABLE: ReadonlySet<TurnEventBody['kind']> = new Set(['collected', 'checkpoint', 'gate', 'attempt.ended']);

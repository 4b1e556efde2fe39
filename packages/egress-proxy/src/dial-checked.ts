import type { Duplex } from 'node:stream';
import type { Cut } from './cut.ts';
import { type CheckedAddress, type Dial, DialFault } from './dial.ts';
import { interleaveFamilies } from './interleave-families.ts';
import type { ProxyReason } from './reasons.ts';

export type DialResult =
  | { readonly ok: true; readonly stream: Duplex; readonly address: string }
  | { readonly ok: false; readonly reason: ProxyReason | 'cancelled'; readonly address: string | undefined };

/** Runs something once, `ms` from now; what it gives takes that back. */
export type After = (ms: number, run: () => void) => () => void;

export interface DialPlan {
  readonly dial: Dial;
  readonly host: string;
  readonly port: number;
  readonly addresses: readonly CheckedAddress[];
  /** All attempts together. */
  readonly totalMs: number;
  /** From one attempt to the next while none has ended. */
  readonly staggerMs: number;
  readonly cut: Cut;
  readonly after?: After;
}

const systemAfter: After = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};

/**
 * Dials checked addresses, IPv6 and IPv4 in turns: the next one when an attempt failed, and after `staggerMs` beside those that are under
 * way. The first that connects is kept; all others are given up, and one that connects after that is closed. Never rejects.
 */
export function dialChecked(plan: DialPlan): Promise<DialResult> {
  return new Promise((resolve) => new DialRace(plan, resolve).start());
}

class DialRace {
  private readonly plan: DialPlan;
  private readonly resolve: (result: DialResult) => void;
  private readonly after: After;
  private readonly waiting: CheckedAddress[];
  private readonly running = new Set<AbortController>();
  private readonly onCut = (): void => this.settle({ ok: false, reason: 'cancelled', address: this.newest });
  private stopTotal = (): void => {};
  private stopStagger = (): void => {};
  private newest: string | undefined;
  private isOver = false;

  constructor(plan: DialPlan, resolve: (result: DialResult) => void) {
    this.plan = plan;
    this.resolve = resolve;
    this.after = plan.after ?? systemAfter;
    this.waiting = interleaveFamilies(plan.addresses);
  }

  start(): void {
    this.stopTotal = this.after(this.plan.totalMs, () => this.settle({ ok: false, reason: 'dial_timeout', address: this.newest }));
    this.startNext();
    this.plan.cut.join(this.onCut);
  }

  private startNext(): void {
    this.stopStagger();
    const target = this.waiting.shift();
    if (target === undefined || this.isOver) return;
    this.newest = target.address;
    if (this.waiting.length > 0) this.stopStagger = this.after(this.plan.staggerMs, () => this.startNext());
    void this.attempt(target);
  }

  private async attempt(target: CheckedAddress): Promise<void> {
    const { dial, host, port } = this.plan;
    const abort = new AbortController();
    this.running.add(abort);
    try {
      const stream = await dial({ ...target, host, port, signal: abort.signal });
      stream.on('error', () => {});
      this.running.delete(abort);
      if (this.isOver) stream.destroy();
      else this.settle({ ok: true, stream, address: target.address });
    } catch (error) {
      this.running.delete(abort);
      this.fail(target, error);
    }
  }

  private fail({ address }: CheckedAddress, error: unknown): void {
    if (this.isOver) return;
    const reason = error instanceof DialFault ? error.reason : 'dial_failed';
    const isLast = this.waiting.length === 0 && this.running.size === 0;
    if (isLast || (error instanceof DialFault && error.isFinal)) this.settle({ ok: false, reason, address });
    else this.startNext();
  }

  private settle(result: DialResult): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopTotal();
    this.stopStagger();
    this.plan.cut.leave(this.onCut);
    for (const abort of this.running) abort.abort();
    this.resolve(result);
  }
}

import type { Duplex } from 'node:stream';
import { decideAddress, decideHost, type EgressPolicy, formatBudget, type HostDecision } from '@firecrew/egress-policy';
import type { EgressAuditLine, EgressIds } from './audit-line.ts';
import type { BudgetBook, TunnelAccount } from './budget-book.ts';
import { ByteSource } from './byte-source.ts';
import { Cut } from './cut.ts';
import { raceDeadline } from './deadline.ts';
import { findWay, type Via, type Way, type WayContext } from './find-way.ts';
import { pumpTunnel, type TunnelEnd } from './pump.ts';
import { checkHello, readHead } from './read-steps.ts';
import type { CancelReason } from './reasons.ts';
import { formatRefusal, type Refusal, TUNNEL_OPEN_ANSWER } from './refusal.ts';
import type { TunnelCounts } from './tunnel-counts.ts';

/** Wall clock for the lines and a clock that never jumps for durations, both in ms. */
export interface EgressClock {
  readonly now: () => number;
  readonly monotonic: () => number;
}

/** What a connection shares with the others of its proxy. Its policy may be replaced at any time. */
export interface ConnectionContext extends WayContext {
  readonly tunnels: TunnelCounts;
  readonly budgets: BudgetBook;
  readonly clock: EgressClock;
  readonly ids: EgressIds;
  /** Writes one line; false when it was not written in time. */
  readonly record: (line: EgressAuditLine) => Promise<boolean>;
  /** False once the lease is lost, which also cuts every other tunnel. */
  readonly leaseHeld: () => boolean;
  readonly countRefusal: (refusal: Refusal) => void;
  readonly countTunnel: (change: 'opened' | TunnelEnd) => void;
}

type AllowedTarget = Extract<HostDecision, { verdict: 'allowed' }>;
/** The way a step can end the connection: with a refusal, or without a word. */
type Stop = Refusal | 'silent';

/** One guest connection, from its first byte to its last audit line. */
export class Connection {
  private readonly context: ConnectionContext;
  private readonly number: number;
  private readonly source: ByteSource;
  private readonly started: number;
  private readonly cut = new Cut();
  private cancelReason: CancelReason = 'proxy_closed';
  private answered = false;
  /** What was allowed, from the verdict on: a policy that takes its place is asked about it. */
  private target: AllowedTarget | undefined;
  private via: Via | undefined;
  /** The addresses that were allowed, and once one is dialled that one alone. */
  private addresses: readonly string[] = [];

  constructor(context: ConnectionContext, number: number, stream: Duplex) {
    this.context = context;
    this.number = number;
    this.source = new ByteSource(stream);
    this.started = context.clock.monotonic();
  }

  /** Cuts the connection at whatever step it is. */
  cancel(reason: CancelReason): void {
    if (this.cut.isMade) return;
    this.cancelReason = reason;
    this.cut.make();
  }

  /** Cuts the connection where `policy` does not allow what another one has allowed; one that nothing was allowed to yet is judged by it later. True where it was cut. */
  judgeAgain(policy: EgressPolicy): boolean {
    const { target } = this;
    if (target === undefined || this.cut.isMade) return false;
    const now = decideHost({ policy, host: target.host, port: target.port });
    // A tunnel of any bytes showed no server name, so it is none that a rule for TLS allows.
    const allowed = now.verdict === 'allowed' && (target.protocol === 'tls' || now.protocol === 'tcp');
    const reachable = this.addresses.every((address) => decideAddress({ policy, host: target.host, address }).verdict === 'allowed');
    if (allowed && reachable) return false;
    this.cancel('policy_changed');
    return true;
  }

  /** Serves the connection to its end; never rejects. `busy` refuses it unread. */
  async run(busy: boolean): Promise<void> {
    try {
      const stop = busy ? refusal('busy', 'connections_busy') : await this.serve();
      if (stop !== undefined) await this.refuse(stop);
    } catch {
      await this.refuse(refusal('unreachable', 'internal_error')).catch(() => {});
    } finally {
      this.source.stream.destroy();
    }
  }

  private async serve(): Promise<Stop | undefined> {
    if (!this.context.leaseHeld()) return refusal('denied', 'lease_lost');
    const head = await readHead(this.source, this.context.limits.headMs, this.cut);
    if (head.kind === 'silent') return 'silent';
    if (head.kind === 'cancelled') return this.cancelled();
    if (head.kind === 'refused') return refusal(head.reason === 'plain_http' ? 'denied' : 'malformed', head.reason);
    const target = decideHost({ policy: this.context.policy(), host: head.request.rawHost, port: head.request.port });
    if (target.verdict !== 'allowed') return target;
    this.target = target;
    const place = this.context.tunnels.take(target.host);
    if (place !== 'taken') return { ...named(target), verdict: 'busy', reason: place };
    try {
      return await this.chargeTunnel(target);
    } finally {
      this.context.tunnels.release(target.host);
    }
  }

  /** Charged before anything is looked up, so that of several connections at once none passes a budget; one that gets no tunnel costs nothing. */
  private async chargeTunnel(target: AllowedTarget): Promise<Stop | undefined> {
    const account = this.context.budgets.account(target.host, () => this.context.policy().budgets);
    const spent = account.open();
    if (spent !== undefined) return { ...named(target), verdict: 'denied', reason: spent.reason, rule: formatBudget(spent) };
    try {
      return await this.openTunnel(target, account);
    } finally {
      if (!this.answered) account.giveBack();
    }
  }

  private async openTunnel(target: AllowedTarget, account: TunnelAccount): Promise<Stop | undefined> {
    const { context } = this;
    const lookupStart = context.clock.monotonic();
    const way = await findWay(context, target, this.cut);
    const lookupMs = this.since(lookupStart);
    if (way.kind === 'cancelled') return this.cancelled(target);
    this.via = way.via;
    if (way.kind === 'refused') return { ...named(target), ...way.refusal, lookupMs };
    this.addresses = way.addresses.map(({ address }) => address);
    // The policy may have been replaced between the verdict on the addresses and this line, when there was nothing yet to judge again.
    if (this.judgeAgain(context.policy())) return this.cancelled(target);
    if (this.source.stream.destroyed) return { ...named(target), verdict: 'unreachable', reason: 'client_gone', lookupMs };
    if (!context.leaseHeld()) return { ...named(target), verdict: 'denied', reason: 'lease_lost' };
    const recorded = await this.write({
      event: 'open',
      verdict: 'allowed',
      reason: 'listed',
      ...named(target),
      addresses: this.addresses,
      lookupMs,
    });
    if (!recorded) return { ...named(target), verdict: 'denied', reason: 'audit_unavailable', lookupMs };
    if (this.cut.isMade) return { ...this.cancelled(target), lookupMs };
    return await this.dialAndRelay(target, account, way, lookupMs);
  }

  private async dialAndRelay(
    target: AllowedTarget,
    account: TunnelAccount,
    way: Extract<Way, { kind: 'found' }>,
    lookupMs: number,
  ): Promise<Stop | undefined> {
    const { context } = this;
    const dialStart = context.clock.monotonic();
    const dialled = await way.dial(this.cut);
    // Where only a name was judged, the address is that of the operator's proxy: none of the target's, and none to judge or to tell.
    const address = way.addresses.length === 0 || dialled.address === undefined ? {} : { address: dialled.address };
    const times = { lookupMs, connectMs: this.since(dialStart) };
    if (!dialled.ok) {
      if (dialled.reason === 'cancelled') return this.cancelled(target);
      const verdict = dialled.reason === 'chain_refused' ? 'denied' : 'unreachable';
      return { ...named(target), ...address, verdict, reason: dialled.reason, ...times };
    }
    this.addresses = Object.values(address);
    const upstream = new ByteSource(dialled.stream);
    try {
      return await this.relay(target, account, upstream, { ...address, ...times });
    } finally {
      upstream.stream.destroy();
    }
  }

  private async relay(
    target: AllowedTarget,
    account: TunnelAccount,
    upstream: ByteSource,
    facts: { readonly address?: string; readonly lookupMs: number; readonly connectMs: number },
  ): Promise<Stop | undefined> {
    const { context, source } = this;
    const common = { ...named(target), ...facts };
    if (!context.leaseHeld()) return { ...common, verdict: 'denied', reason: 'lease_lost' };
    if (this.cut.isMade) return { ...common, ...this.cancelled() };
    this.answered = true;
    source.stream.write(TUNNEL_OPEN_ANSWER);
    context.countTunnel('opened');
    const hello = target.protocol === 'tls' ? await checkHello(source, target.host, context.limits.helloMs, this.cut) : undefined;
    if (hello?.kind === 'refused') {
      // The 200 is out, so the guest learns of it by the end of the tunnel alone.
      return { ...common, verdict: 'denied', reason: hello.reason };
    }
    const end: TunnelEnd =
      hello?.kind === 'gone'
        ? { reason: 'guest_closed', closedBy: 'guest', bytesIn: 0, bytesOut: 0 }
        : await pumpTunnel({
            guest: source,
            upstream,
            idleMs: context.limits.idleMs,
            mayForward: () => context.leaseHeld(),
            account,
            cut: this.cut,
            cancelReason: () => this.cancelReason,
          });
    context.countTunnel(end);
    await this.write({ event: 'end', verdict: 'allowed', ...common, ...end });
    return undefined;
  }

  private async refuse(stop: Stop): Promise<void> {
    if (stop === 'silent') return;
    const { limits } = this.context;
    this.context.countRefusal(stop);
    await this.write({ event: 'refused', ...stop });
    const { stream } = this.source;
    if (stream.destroyed || this.answered) return;
    const flushed = new Promise<void>((resolve) => stream.end(formatRefusal(stop), () => resolve()));
    // Closing with unread bytes can destroy the answer on its way, so the guest may finish first, within bounds.
    if (this.cut.isMade) await raceDeadline(flushed, limits.lingerMs, new Cut());
    else await raceDeadline(Promise.all([flushed, this.source.discard(limits.lingerBytes)]), limits.lingerMs, this.cut);
  }

  private cancelled(target?: AllowedTarget): Refusal {
    return { ...(target && named(target)), verdict: 'denied', reason: this.cancelReason };
  }

  private since(start: number): number {
    return Math.round(this.context.clock.monotonic() - start);
  }

  private write(line: Omit<EgressAuditLine, 'connection' | 'ids' | 'at' | 'durationMs'>): Promise<boolean> {
    const { clock, ids } = this.context;
    const at = new Date(clock.now()).toISOString();
    return this.context.record({
      ...line,
      ...(this.via && { via: this.via }),
      connection: this.number,
      ids,
      durationMs: this.since(this.started),
      at,
    });
  }
}

function refusal(verdict: Refusal['verdict'], reason: Refusal['reason']): Refusal {
  return { verdict, reason };
}

function named(target: AllowedTarget): { readonly host: string; readonly port: number; readonly rule: string } {
  return { host: target.host, port: target.port, rule: target.rule };
}

import type { Duplex } from 'node:stream';
import type { EgressPolicy } from '@firecrew/egress-policy';
import type { EgressAuditLine, EgressIds } from './audit-line.ts';
import { BudgetBook } from './budget-book.ts';
import type { ChainOptions } from './chain/chain-dial.ts';
import { Connection, type ConnectionContext, type EgressClock } from './connection.ts';
import { Cut } from './cut.ts';
import { raceDeadline } from './deadline.ts';
import { type Dial, defaultDial } from './dial.ts';
import { EGRESS_PROXY_LIMITS, type EgressProxyLimits } from './limits.ts';
import { defaultResolve, LookUps, type Resolve } from './look-up.ts';
import type { EndReason, RefusalReason } from './reasons.ts';
import { TunnelCounts } from './tunnel-counts.ts';

export interface EgressProxyOptions {
  /** The effective policy of this VM, until another one takes its place. */
  readonly policy: EgressPolicy;
  readonly resolve?: Resolve;
  readonly dial?: Dial;
  /** Writes one line durably; it throws or rejects when it could not, and then no tunnel opens. */
  readonly audit: (line: EgressAuditLine) => Promise<void> | void;
  /** Whether this attempt still holds its lease; asked before each tunnel and each forwarded chunk. Once false, everything is cut for good. */
  readonly leaseValid?: () => boolean;
  readonly limits?: Partial<EgressProxyLimits>;
  /** What passed already, shared by the proxies of one guest that come after one another; its own where none is given. */
  readonly budgets?: BudgetBook;
  readonly clock?: EgressClock;
  /** The operator's own proxy; nothing else, and no environment, names one. */
  readonly chain?: ChainOptions;
  readonly ids: EgressIds;
}

/** Counts since the start, for metrics and for the summary of a run. */
export interface EgressProxyStats {
  readonly connections: number;
  readonly connectionsNow: number;
  /** Tunnels open or being opened. */
  readonly tunnelsNow: number;
  readonly tunnelsOpened: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Lines that were not written. */
  readonly auditFailures: number;
  readonly refused: Readonly<Partial<Record<RefusalReason, number>>>;
  readonly ended: Readonly<Partial<Record<EndReason, number>>>;
}

export interface EgressProxy {
  /**
   * Serves one connection of the guest. The stream is guarded against errors before this returns, and is destroyed at its end.
   * It must keep half-closed sides open (`allowHalfOpen: true`), or an answer after the guest's end is lost.
   */
  handle(stream: Duplex): void;
  /**
   * Puts a policy in the place of the one before: at once and as a whole. Whatever is judged after this call is judged by it, connections
   * under way too; a tunnel that it does not allow, open or being opened, is cut with `policy_changed`. Gives how many were cut.
   */
  replacePolicy(policy: EgressPolicy): number;
  /** Cuts every connection and resolves when the last audit line is written (or given up). New connections are refused. */
  close(): Promise<void>;
  stats(): EgressProxyStats;
}

const SYSTEM_CLOCK: EgressClock = { now: () => Date.now(), monotonic: () => performance.now() };

interface Counters {
  connections: number;
  tunnelsOpened: number;
  bytesIn: number;
  bytesOut: number;
  auditFailures: number;
  readonly refused: Map<RefusalReason, number>;
  readonly ended: Map<EndReason, number>;
}

function add<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** The host side of a VM's only way out: a CONNECT proxy that carries out the decisions of `@firecrew/egress-policy`. */
export function createEgressProxy(options: EgressProxyOptions): EgressProxy {
  const limits: EgressProxyLimits = { ...EGRESS_PROXY_LIMITS, ...options.limits };
  const live = new Map<Connection, Promise<void>>();
  const counters: Counters = {
    connections: 0,
    tunnelsOpened: 0,
    bytesIn: 0,
    bytesOut: 0,
    auditFailures: 0,
    refused: new Map(),
    ended: new Map(),
  };
  const never = new Cut();
  let policy = options.policy;
  let leaseLost = false;
  let closing = false;

  function leaseHeld(): boolean {
    if (leaseLost) return false;
    leaseLost = !askLease(options.leaseValid);
    if (leaseLost) for (const connection of live.keys()) connection.cancel('lease_lost');
    return !leaseLost;
  }

  async function record(line: EgressAuditLine): Promise<boolean> {
    try {
      const written: unknown = options.audit(line);
      // A line that is written when the call returns needs no deadline.
      if (typeof written !== 'object' || written === null) return true;
      const raced = await raceDeadline(Promise.resolve(written), limits.auditMs, never);
      if (raced.kind === 'done') return true;
    } catch {
      // Counted below; the caller fails closed.
    }
    counters.auditFailures += 1;
    return false;
  }

  const context: ConnectionContext = {
    policy: () => policy,
    dial: options.dial ?? defaultDial,
    chain: options.chain,
    lookUps: new LookUps(options.resolve ?? defaultResolve, limits.lookups),
    tunnels: new TunnelCounts(limits),
    budgets: options.budgets ?? new BudgetBook(),
    limits,
    clock: options.clock ?? SYSTEM_CLOCK,
    ids: options.ids,
    record,
    leaseHeld,
    countRefusal: ({ reason }) => add(counters.refused, reason),
    countTunnel: (change) => {
      if (change === 'opened') {
        counters.tunnelsOpened += 1;
        return;
      }
      counters.bytesIn += change.bytesIn;
      counters.bytesOut += change.bytesOut;
      add(counters.ended, change.reason);
    },
  };

  return {
    handle(stream) {
      counters.connections += 1;
      const connection = new Connection(context, counters.connections, stream);
      const served = connection.run(live.size >= limits.connections).finally(() => live.delete(connection));
      live.set(connection, served);
      if (closing) connection.cancel('proxy_closed');
    },
    replacePolicy(next) {
      policy = next;
      return [...live.keys()].filter((connection) => connection.judgeAgain(next)).length;
    },
    async close() {
      closing = true;
      for (const connection of live.keys()) connection.cancel('proxy_closed');
      await Promise.all(live.values());
    },
    stats: () => ({
      connections: counters.connections,
      connectionsNow: live.size,
      tunnelsNow: context.tunnels.open,
      tunnelsOpened: counters.tunnelsOpened,
      bytesIn: counters.bytesIn,
      bytesOut: counters.bytesOut,
      auditFailures: counters.auditFailures,
      refused: Object.fromEntries(counters.refused),
      ended: Object.fromEntries(counters.ended),
    }),
  };
}

/** A lease that cannot be asked about is not held. */
function askLease(leaseValid: (() => boolean) | undefined): boolean {
  try {
    return leaseValid === undefined || leaseValid();
  } catch {
    return false;
  }
}

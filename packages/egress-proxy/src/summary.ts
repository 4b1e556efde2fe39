import type { EgressAuditLine } from './audit-line.ts';

/** Distinct targets that a summary names; more are counted under one name. */
const SUMMARY_HOSTS_MAX = 200;
/** The name under which the others are counted. */
const SUMMARY_OTHERS = '(others)';

/** Tunnels to one target that have ended, with what went through them. */
export interface ReachedTarget {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Refusals of one target for one reason; `port` is null where the head named none that can be read. */
export interface RefusedTarget {
  readonly host: string;
  readonly port: number | null;
  readonly reason: string;
  readonly connections: number;
}

type CountedLine = Pick<EgressAuditLine, 'event' | 'reason'> & {
  readonly host?: string | null;
  readonly port?: number | null;
  readonly bytesIn?: number | null;
  readonly bytesOut?: number | null;
};

/** Counts audit lines by target, and refusals by reason too, in bounded memory. */
export class SummaryBook {
  readonly #allowed = new Map<string, ReachedTarget>();
  readonly #denied = new Map<string, RefusedTarget>();

  /** Counts a line; for a refusal gives how many of its kind there are, else 0. */
  add(line: CountedLine): number {
    if (line.event === 'end' && line.host != null && line.port != null) this.#addAllowed(line, line.host, line.port);
    return line.event === 'refused' ? this.#addDenied(line) : 0;
  }

  summary(): { allowed: ReachedTarget[]; denied: RefusedTarget[] } {
    return { allowed: [...this.#allowed.values()], denied: [...this.#denied.values()] };
  }

  #addDenied(line: CountedLine): number {
    const host = this.#denied.size >= SUMMARY_HOSTS_MAX ? SUMMARY_OTHERS : (line.host ?? '(no name)');
    const port = line.port ?? null;
    const key = `${host}:${port ?? ''}:${line.reason}`;
    const connections = (this.#denied.get(key)?.connections ?? 0) + 1;
    this.#denied.set(key, { host, port, reason: line.reason, connections });
    return connections;
  }

  #addAllowed(line: CountedLine, name: string, port: number): void {
    const host = this.#allowed.size >= SUMMARY_HOSTS_MAX ? SUMMARY_OTHERS : name;
    const key = `${host}:${port}`;
    const known = this.#allowed.get(key);
    this.#allowed.set(key, {
      host,
      port,
      connections: (known?.connections ?? 0) + 1,
      bytesIn: (known?.bytesIn ?? 0) + (line.bytesIn ?? 0),
      bytesOut: (known?.bytesOut ?? 0) + (line.bytesOut ?? 0),
    });
  }
}

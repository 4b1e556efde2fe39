import type { Via } from './find-way.ts';
import type { EndReason, RefusalReason } from './reasons.ts';

/** Who the guest is; copied into every line. */
export interface EgressIds {
  readonly vm: string;
  readonly mission?: string;
  readonly run?: string;
  readonly turn?: string;
  readonly attempt?: number;
  readonly node?: string;
}

export type EgressVerdict = 'allowed' | 'denied' | 'malformed' | 'unreachable' | 'busy';

/**
 * One line of the egress audit.
 * `open` is written before the dial and says what was permitted; exactly one `end` (bytes flowed or could have) or `refused` with the same
 * `connection` follows it. A connection that is refused earlier has one `refused` line. A guest's own text never enters a line: `host` is
 * the normalised name and is absent where there is none.
 */
export interface EgressAuditLine {
  readonly event: 'open' | 'refused' | 'end';
  /** Number of the connection, from 1, unique within one proxy. */
  readonly connection: number;
  readonly ids: EgressIds;
  readonly verdict: EgressVerdict;
  readonly reason: 'listed' | RefusalReason | EndReason;
  readonly host?: string;
  readonly port?: number;
  /** Every address that was checked, all of them allowed (`open`). */
  readonly addresses?: readonly string[];
  /** The address dialled (`end`), or the one that was refused (`refused`). */
  readonly address?: string;
  /** The allow-list entry or the address range that decided. */
  readonly rule?: string;
  /** How it left the host, where not directly; `name-only`: no address could be judged. */
  readonly via?: Via;
  /** Bytes from the upstream to the guest. */
  readonly bytesIn?: number;
  /** Bytes from the guest to the upstream. */
  readonly bytesOut?: number;
  readonly closedBy?: 'guest' | 'upstream' | 'proxy';
  readonly lookupMs?: number;
  readonly connectMs?: number;
  /** From the first moment of the connection. */
  readonly durationMs?: number;
  /** Wall clock, ISO 8601. */
  readonly at: string;
}

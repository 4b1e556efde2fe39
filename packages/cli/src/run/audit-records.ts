import type { EgressLine, MissionEvent, MissionView } from '@firecrew/protocol';

/** One connection of a guest, with all that is known of it and of who it was for. */
export interface AuditRecord {
  /** `end` of a tunnel, `open` for one that had not ended, `refused` for none. */
  readonly event: EgressLine['event'];
  /** Sequence number of the last event that tells of it. */
  readonly seq: number;
  /** When the server stored that event, and for a tunnel the one of its opening. */
  readonly at: string;
  readonly openedAt: string | null;
  readonly missionId: string;
  readonly runId: string | null;
  readonly phaseId: string;
  readonly turnId: string;
  readonly attempt: number;
  readonly nodeId: string | null;
  readonly seat: { readonly id: string; readonly role: string; readonly keyId: string } | null;
  readonly connection: number;
  readonly purpose: EgressLine['purpose'];
  readonly host: string | null;
  readonly port: number | null;
  readonly address: string | null;
  readonly rule: string | null;
  readonly verdict: string;
  readonly reason: string;
  readonly bytesIn: number | null;
  readonly bytesOut: number | null;
  readonly lookupMs: number | null;
  readonly connectMs: number | null;
  readonly durationMs: number | null;
}

type Attempt = MissionView['phases'][number]['attempts'][number];

/** Whom the attempts of a mission belong to. */
export interface AuditOwner extends Pick<MissionView, 'id' | 'seat'> {
  readonly phases: readonly { readonly attempts: readonly Pick<Attempt, 'turnId' | 'attempt' | 'runId' | 'nodeId'>[] }[];
}

/** Makes one record of the two lines of a tunnel. Holds no more than the tunnels that are open. */
export class AuditRecords {
  readonly #open = new Map<string, AuditRecord>();

  /** The record that an event completes; undefined while there is none, and for events of other things. */
  add({ seq, at, body }: MissionEvent, owner: AuditOwner): AuditRecord | undefined {
    if (body.kind !== 'turn.event' || body.body.kind !== 'egress') return undefined;
    const { phaseId, turnId, attempt } = body;
    const { line } = body.body;
    const key = `${turnId}.${attempt}.${line.purpose}.${line.connection}`;
    const before = line.event === 'end' ? this.#open.get(key) : undefined;
    const found = owner.phases.flatMap(({ attempts }) => attempts).find((one) => one.turnId === turnId && one.attempt === attempt);
    const record: AuditRecord = {
      event: line.event,
      seq,
      at,
      openedAt: before?.openedAt ?? (line.event === 'open' ? at : null),
      missionId: owner.id,
      runId: found?.runId ?? null,
      phaseId,
      turnId,
      attempt,
      nodeId: found?.nodeId ?? null,
      seat: owner.seat ?? null,
      connection: line.connection,
      purpose: line.purpose,
      host: line.host ?? before?.host ?? null,
      port: line.port ?? before?.port ?? null,
      address: line.address ?? before?.address ?? null,
      rule: line.rule ?? before?.rule ?? null,
      verdict: line.verdict,
      reason: line.reason,
      bytesIn: line.bytesIn,
      bytesOut: line.bytesOut,
      lookupMs: line.lookupMs ?? before?.lookupMs ?? null,
      connectMs: line.connectMs ?? before?.connectMs ?? null,
      durationMs: line.durationMs,
    };
    if (line.event !== 'open') {
      this.#open.delete(key);
      return record;
    }
    // Nodes of before numbered the connections of each purpose anew: an open line without an end must not be lost to another one.
    const lost = this.#open.get(key);
    this.#open.set(key, record);
    return lost;
  }

  /** Tunnels of which no end was told, in the order of their opening. */
  rest(): AuditRecord[] {
    return [...this.#open.values()];
  }
}

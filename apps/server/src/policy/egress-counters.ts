import type { EgressLine, TurnEvent } from '@firecrew/protocol';

/** Distinct pairs of verdict and reason; the words come from nodes, and a metric must not grow by them. */
export const MAX_SERIES = 200;
const OTHER = 'other';
const WORD = /^[a-z][a-z0-9_]{0,63}$/;

/** Counts what the nodes of this server report of egress, since it was started. */
export class EgressCounters {
  readonly #connections = new Map<string, { readonly verdict: string; readonly reason: string; count: number }>();
  #bytesIn = 0;
  #bytesOut = 0;

  /** Counts the audit lines among events that were stored now: each connection once, by how it was refused or how its tunnel ended. */
  count(events: readonly TurnEvent[]): void {
    for (const { body } of events) if (body.kind === 'egress' && body.line.event !== 'open') this.#add(body.line);
  }

  /** The counters as lines of Prometheus text. */
  lines(): string[] {
    const rows = [...this.#connections.values()].sort((a, b) => `${a.verdict} ${a.reason}`.localeCompare(`${b.verdict} ${b.reason}`, 'en'));
    return [
      '# HELP firecrew_egress_connections_total Connections of guests by verdict and reason: of the refusal, or of the end of the tunnel.',
      '# TYPE firecrew_egress_connections_total counter',
      ...rows.map(({ verdict, reason, count }) => `firecrew_egress_connections_total{verdict="${verdict}",reason="${reason}"} ${count}`),
      '# HELP firecrew_egress_bytes_total Bytes of ended tunnels; in is from the upstream to the guest.',
      '# TYPE firecrew_egress_bytes_total counter',
      `firecrew_egress_bytes_total{direction="in"} ${this.#bytesIn}`,
      `firecrew_egress_bytes_total{direction="out"} ${this.#bytesOut}`,
    ];
  }

  #seriesOf(verdict: string, reason: string): { count: number } {
    const key = `${verdict} ${reason}`;
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    if (this.#connections.size >= MAX_SERIES && key !== `${OTHER} ${OTHER}`) return this.#seriesOf(OTHER, OTHER);
    const entry = { verdict, reason, count: 0 };
    this.#connections.set(key, entry);
    return entry;
  }

  #add(line: EgressLine): void {
    const entry = this.#seriesOf(labelOf(line.verdict), labelOf(line.reason));
    entry.count += 1;
    this.#bytesIn += line.bytesIn ?? 0;
    this.#bytesOut += line.bytesOut ?? 0;
  }
}

function labelOf(word: string): string {
  return WORD.test(word) ? word : OTHER;
}

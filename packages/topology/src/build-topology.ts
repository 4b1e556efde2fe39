import { findKind, type KindEntry, TOPOLOGY_KINDS, type TopologyKind } from './catalogue.ts';
import { type Refusal, refuse, TopologyError, type TopologyReason } from './reasons.ts';
import { type Topology, type TopologyNode, validateTopology } from './validate-topology.ts';

/** One member of a crew; absent parts are inherited from the mission. */
export interface Member {
  readonly role: string;
  readonly backend?: string | undefined;
  readonly model?: string | undefined;
  readonly seat?: string | undefined;
}

/**
 * The graph of a kind for members (or bare roles) in order, with the platform's node ids `n0`, `n1`, ... `rounds` is the kind's default
 * where it is absent.
 */
export function buildTopology(
  kind: TopologyKind | string,
  members: readonly (Member | string)[],
  options: { readonly rounds?: number | undefined } = {},
): { readonly verdict: 'built'; readonly topology: Topology } | Refusal<TopologyReason> {
  const entry = findKind(kind);
  if (entry === undefined)
    return refuse('unknown_kind', `there is no topology ${JSON.stringify(kind.slice(0, 64))}; known: ${TOPOLOGY_KINDS.join(', ')}`);
  const { rounds = entry.defaultRounds } = options;
  const refusal = refuseCounts(entry, members.length, rounds);
  if (refusal !== undefined) return refusal;
  const shape = entry.shape(members.length, rounds);
  const nodes = members.map((member, at) => nodeOf(typeof member === 'string' ? { role: member } : member, at, shape.turns[at] ?? 1));
  const edges = shape.edges.map(({ from, to, when }) => ({ from: `n${from}`, to: `n${to}`, ...(when === undefined ? {} : { when }) }));
  const checked = validateTopology({ kind: entry.kind, nodes, edges });
  return checked.verdict === 'valid' ? { verdict: 'built', topology: checked.topology } : checked;
}

/** The graph of one turn, which is the default. Throws `topology_invalid` for a role or name that no graph may hold. */
export function soloTopology(member: Member | string = 'engineer'): Topology {
  const built = buildTopology('solo', [member]);
  if (built.verdict === 'refused') throw new TopologyError('topology_invalid', built.message);
  return built.topology;
}

function refuseCounts(entry: KindEntry, members: number, rounds: number): Refusal<TopologyReason> | undefined {
  if (members < entry.minMembers || members > entry.maxMembers)
    return refuse('member_count', `the topology ${entry.kind} takes ${span(entry.minMembers, entry.maxMembers)} members, not ${members}`);
  if (!Number.isInteger(rounds) || rounds < entry.minRounds || rounds > entry.maxRounds)
    return refuse('round_count', `the topology ${entry.kind} takes ${span(entry.minRounds, entry.maxRounds)} rounds, not ${rounds}`);
  return undefined;
}

function span(from: number, to: number): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

function nodeOf(member: Member, at: number, turns: number): TopologyNode {
  const named = (['backend', 'model', 'seat'] as const).flatMap((key) => {
    const value = member[key]?.trim() ?? '';
    return value === '' ? [] : [[key, value] as const];
  });
  return { id: `n${at}`, role: member.role.trim(), ...Object.fromEntries(named), ...(turns === 1 ? {} : { turns }) };
}

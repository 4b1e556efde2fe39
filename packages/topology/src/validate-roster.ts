import { buildTopology, type Member } from './build-topology.ts';
import { findKind, TOPOLOGY_KINDS } from './catalogue.ts';
import { MAX_MEMBERS } from './limits.ts';
import { type Refusal, type RosterReason, refuse } from './reasons.ts';
import type { Topology } from './validate-topology.ts';

/** A proposal of who works on a mission. */
export interface Roster {
  readonly topologyKind: string;
  readonly members: readonly RosterMember[];
}

/** One proposed member; `rationale` is shown to the reviewer and read by no code. */
export interface RosterMember {
  readonly role: string;
  readonly backend?: string | null | undefined;
  readonly rationale?: string | undefined;
}

/** Validates a roster when it is proposed and again when it is approved, and builds the graph it stands for. */
export function validateRoster(
  roster: Roster,
  known: { readonly availableBackends: readonly string[]; readonly missionBackend?: string | undefined },
): { readonly verdict: 'valid'; readonly topology: Topology } | Refusal<RosterReason> {
  const { members } = roster;
  if (members.length === 0) return refuse('roster_empty', 'the roster has no members');
  if (members.length > MAX_MEMBERS)
    return refuse('roster_too_many_members', `the roster has ${members.length} members; the limit is ${MAX_MEMBERS}`);
  if (findKind(roster.topologyKind) === undefined) {
    return refuse(
      'roster_unknown_topology',
      `there is no topology ${JSON.stringify(roster.topologyKind.slice(0, 64))}; known: ${TOPOLOGY_KINDS.join(', ')}`,
    );
  }
  const available = [...new Set(known.availableBackends)].sort();
  for (const [at, member] of members.entries()) {
    if (member.role.trim() === '') return refuse('roster_blank_role', `member ${at} has no role`);
    const backend = member.backend?.trim() || known.missionBackend;
    if (backend !== undefined && !available.includes(backend)) {
      const list = available.length === 0 ? 'none' : available.join(', ');
      return refuse('roster_unknown_backend', `member ${at} needs the backend ${JSON.stringify(backend.slice(0, 64))}; available: ${list}`);
    }
  }
  const built = buildTopology(roster.topologyKind, members.map(asMember));
  if (built.verdict === 'refused') return refuse('roster_unbuildable', built.message);
  return { verdict: 'valid', topology: built.topology };
}

function asMember(member: RosterMember): Member {
  const backend = member.backend?.trim() ?? '';
  return backend === '' ? { role: member.role } : { role: member.role, backend };
}

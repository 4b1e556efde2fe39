import { buildTopology, type Member } from './build-topology.ts';
import { findKind, TOPOLOGY_KINDS } from './catalogue.ts';
import { MAX_MEMBERS, MAX_RATIONALE_LENGTH } from './limits.ts';
import { type Refusal, type RosterReason, refuse } from './reasons.ts';
import { isObject, type Topology } from './validate-topology.ts';

/** A proposal of who works on a mission. */
export interface Roster {
  readonly topologyKind: string;
  readonly members: readonly RosterMember[];
  /** Absent = the default of the kind. */
  readonly rounds?: number | undefined;
}

/** One proposed member; `rationale` is shown to the reviewer and read by no code. */
export interface RosterMember {
  readonly role: string;
  readonly backend?: string | null | undefined;
  readonly rationale?: string | undefined;
}

/** A refused roster: the first refusal in the closed order, and all of them, so that one retry can mend all. */
export interface RosterRefusal extends Refusal<RosterReason> {
  readonly refusals: readonly Refusal<RosterReason>[];
}

/**
 * Validates a roster (an untrusted document) when it is proposed and again when it is approved, and builds the graph it stands for. This is
 * the one place for rosters. Nothing is repaired: an unknown field is refused by name.
 */
export function validateRoster(
  document: unknown,
  known: { readonly availableBackends: readonly string[]; readonly missionBackend?: string | undefined },
): { readonly verdict: 'valid'; readonly roster: Roster; readonly topology: Topology } | RosterRefusal {
  const malformed = findMalformed(document);
  if (malformed.length > 0 || !isRoster(document)) return refused(malformed);
  const refusals = [...refuseCount(document), ...refuseKind(document), ...refuseMembers(document, known)];
  if (refusals.length > 0) return refused(refusals);
  const built = buildTopology(document.topologyKind, document.members.map(asMember), { rounds: document.rounds });
  if (built.verdict === 'refused') return refused([refuse('roster_unbuildable', built.message)]);
  return { verdict: 'valid', roster: document, topology: built.topology };
}

function refused(refusals: readonly Refusal<RosterReason>[]): RosterRefusal {
  const [first = refuse('roster_malformed' as const, 'the roster cannot be read')] = refusals;
  return { ...first, refusals: refusals.length === 0 ? [first] : refusals };
}

function findMalformed(document: unknown): Refusal<RosterReason>[] {
  const bad = (what: string): Refusal<RosterReason> => refuse('roster_malformed', what);
  if (!isObject(document)) return [bad('the roster is no object')];
  const found = unknownKeys(document, ['topologyKind', 'members', 'rounds'], 'the roster').map(bad);
  if (typeof document.topologyKind !== 'string') found.push(bad('the roster has no text as topologyKind'));
  if (document.rounds !== undefined && typeof document.rounds !== 'number') found.push(bad('the rounds of the roster are no number'));
  if (!Array.isArray(document.members)) return [...found, bad('the roster has no list of members')];
  const list: readonly unknown[] = document.members.slice(0, MAX_MEMBERS);
  for (const [at, member] of list.entries()) {
    if (!isObject(member)) {
      found.push(bad(`member ${at} is no object`));
      continue;
    }
    found.push(...unknownKeys(member, ['role', 'backend', 'rationale'], `member ${at}`).map(bad));
    if (typeof member.role !== 'string') found.push(bad(`member ${at} has no text as role`));
    if (member.backend != null && typeof member.backend !== 'string') found.push(bad(`the backend of member ${at} is no text`));
    if (member.rationale !== undefined && !isRationale(member.rationale))
      found.push(bad(`the rationale of member ${at} is no text of at most ${MAX_RATIONALE_LENGTH} characters`));
  }
  return found;
}

function isRationale(value: unknown): boolean {
  return typeof value === 'string' && value.length <= MAX_RATIONALE_LENGTH;
}

/** The types alone; what {@link findMalformed} found before is not looked for again. */
function isRoster(document: unknown): document is Roster {
  return isObject(document) && typeof document.topologyKind === 'string' && Array.isArray(document.members);
}

function unknownKeys(fields: Readonly<Record<string, unknown>>, allowed: readonly string[], what: string): string[] {
  const extra = Object.keys(fields).filter((key) => !allowed.includes(key));
  return extra.slice(0, MAX_MEMBERS).map((key) => `${what} has the unknown key ${JSON.stringify(key.slice(0, 64))}`);
}

function refuseCount({ members }: Roster): Refusal<RosterReason>[] {
  if (members.length === 0) return [refuse('roster_empty', 'the roster has no members')];
  if (members.length <= MAX_MEMBERS) return [];
  return [refuse('roster_too_many_members', `the roster has ${members.length} members; the limit is ${MAX_MEMBERS}`)];
}

function refuseKind({ topologyKind }: Roster): Refusal<RosterReason>[] {
  if (findKind(topologyKind) !== undefined) return [];
  const named = JSON.stringify(topologyKind.slice(0, 64));
  return [refuse('roster_unknown_topology', `there is no topology ${named}; known: ${TOPOLOGY_KINDS.join(', ')}`)];
}

function refuseMembers(
  { members }: Roster,
  known: { readonly availableBackends: readonly string[]; readonly missionBackend?: string | undefined },
): Refusal<RosterReason>[] {
  const available = [...new Set(known.availableBackends)].sort();
  return members.slice(0, MAX_MEMBERS).flatMap((member, at) => {
    const found: Refusal<RosterReason>[] = [];
    if (member.role.trim() === '') found.push(refuse('roster_blank_role', `member ${at} has no role`));
    const backend = member.backend?.trim() || known.missionBackend;
    if (backend !== undefined && !available.includes(backend)) {
      const list = available.length === 0 ? 'none' : available.join(', ');
      const named = JSON.stringify(backend.slice(0, 64));
      found.push(refuse('roster_unknown_backend', `member ${at} needs the backend ${named}; available: ${list}`));
    }
    return found;
  });
}

function asMember(member: RosterMember): Member {
  const backend = member.backend?.trim() ?? '';
  return backend === '' ? { role: member.role } : { role: member.role, backend };
}

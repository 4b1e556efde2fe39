import { MAX_MEMBERS, MAX_ROUNDS } from './limits.ts';

/** The shapes a crew can have. */
export const TOPOLOGY_KINDS = ['solo', 'pipeline', 'hub_spoke', 'fan_out_fan_in', 'review_loop', 'debate', 'tree', 'mesh'] as const;
/** One member of {@link TOPOLOGY_KINDS}. */
export type TopologyKind = (typeof TOPOLOGY_KINDS)[number];

/**
 * When an edge holds in a graph whose nodes take several turns: absent = within the round; `next_round` = from one round into the next;
 * `at_end` = after the last turn of the node it comes from.
 */
export const EDGE_TIMES = ['next_round', 'at_end'] as const;
/** One member of {@link EDGE_TIMES}. */
export type EdgeTime = (typeof EDGE_TIMES)[number];

/** The graph of a shape by member indexes. */
export interface Shape {
  /** Turns of each member, in order. */
  readonly turns: readonly number[];
  readonly edges: ReadonlyArray<{ readonly from: number; readonly to: number; readonly when?: EdgeTime }>;
}

/** One shape: how many members and rounds it takes, and which member reads whose report. */
export interface KindEntry {
  readonly kind: TopologyKind;
  readonly minMembers: number;
  readonly maxMembers: number;
  readonly minRounds: number;
  readonly maxRounds: number;
  readonly defaultRounds: number;
  /** Later rounds are left out once all who could ask for another are satisfied. */
  readonly settles: boolean;
  readonly summary: string;
  readonly shape: (members: number, rounds: number) => Shape;
}

type Edge = Shape['edges'][number];

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);
const once = (members: number): number[] => range(0, members).map(() => 1);
const pairs = (members: number): Edge[] =>
  range(0, members).flatMap((to) =>
    range(0, members)
      .filter((from) => from !== to)
      .map((from): Edge => ({ from, to, when: 'next_round' })),
  );

const SINGLE = { minRounds: 1, maxRounds: 1, defaultRounds: 1, settles: false } as const;
const REPEATED = { minRounds: 1, maxRounds: MAX_ROUNDS, defaultRounds: 1 } as const;

const CATALOGUE: readonly KindEntry[] = [
  {
    kind: 'solo',
    minMembers: 1,
    maxMembers: 1,
    ...SINGLE,
    summary: 'One agent does it all.',
    shape: () => ({ turns: [1], edges: [] }),
  },
  {
    kind: 'pipeline',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    ...SINGLE,
    summary: 'Each member continues from the one before it and reads its report alone.',
    shape: (members) => ({ turns: once(members), edges: range(1, members).map((to) => ({ from: to - 1, to })) }),
  },
  {
    kind: 'hub_spoke',
    minMembers: 3,
    maxMembers: MAX_MEMBERS,
    ...REPEATED,
    settles: false,
    summary: 'The first member hands out parts, the others each do one, and the first puts them together; more rounds repeat that.',
    shape: (members, rounds) => ({
      turns: range(0, members).map((at) => (at === 0 ? rounds + 1 : rounds)),
      edges: range(1, members).flatMap((spoke): Edge[] => [
        { from: 0, to: spoke },
        { from: spoke, to: 0, when: 'next_round' },
      ]),
    }),
  },
  {
    kind: 'fan_out_fan_in',
    minMembers: 4,
    maxMembers: MAX_MEMBERS,
    ...SINGLE,
    summary: 'The first member plans, those in the middle each do a part, the last puts the parts together.',
    shape: (members) => ({
      turns: once(members),
      edges: range(1, members - 1).flatMap((middle) => [
        { from: 0, to: middle },
        { from: middle, to: members - 1 },
      ]),
    }),
  },
  {
    kind: 'review_loop',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    ...REPEATED,
    settles: true,
    summary: 'The first member writes, the others review, and the first reworks; rounds end early when every reviewer is satisfied.',
    shape: (members, rounds) => ({
      turns: range(0, members).map((at) => (at === 0 ? rounds + 1 : rounds)),
      edges: range(1, members).flatMap((reviewer): Edge[] => [
        { from: 0, to: reviewer },
        { from: reviewer, to: 0, when: 'next_round' },
      ]),
    }),
  },
  {
    kind: 'debate',
    minMembers: 3,
    maxMembers: MAX_MEMBERS,
    ...REPEATED,
    defaultRounds: 2,
    settles: true,
    summary: 'All but the last argue, each reading the others after every round; the last decides between them.',
    shape: (members, rounds) => ({
      turns: range(0, members).map((at) => (at === members - 1 ? 1 : rounds)),
      edges: [
        ...(rounds === 1 ? [] : pairs(members - 1)),
        ...range(0, members - 1).map((from): Edge => ({ from, to: members - 1, when: 'at_end' })),
      ],
    }),
  },
  {
    kind: 'tree',
    minMembers: 3,
    maxMembers: MAX_MEMBERS,
    ...SINGLE,
    summary: 'Each member hands parts to the two below it; the first puts together what the lowest ones made.',
    shape: (members) => ({
      turns: range(0, members).map((at) => (at === 0 ? 2 : 1)),
      edges: [
        ...range(1, members).map((to): Edge => ({ from: Math.floor((to - 1) / 2), to })),
        ...range(1, members)
          .filter((at) => 2 * at + 1 >= members)
          .map((from): Edge => ({ from, to: 0, when: 'next_round' })),
      ],
    }),
  },
  {
    kind: 'mesh',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    minRounds: 2,
    maxRounds: MAX_ROUNDS,
    defaultRounds: 2,
    settles: true,
    summary: 'All members work in rounds, each reading all the others after every round.',
    shape: (members, rounds) => ({ turns: range(0, members).map(() => rounds), edges: pairs(members) }),
  },
];

/** All shapes, in a fixed order. */
export function topologyKinds(): readonly KindEntry[] {
  return CATALOGUE;
}

/** The shape of that name without regard to case and outer spaces; undefined for any other, never a default. */
export function findKind(name: string): KindEntry | undefined {
  const wanted = name.trim().toLowerCase();
  return CATALOGUE.find((entry) => entry.kind === wanted);
}

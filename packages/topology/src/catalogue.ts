import { MAX_MEMBERS } from './limits.ts';

/** The shapes a crew can have. */
export const TOPOLOGY_KINDS = ['solo', 'pipeline', 'review', 'fan_out', 'panel', 'relay'] as const;
/** One member of {@link TOPOLOGY_KINDS}. */
export type TopologyKind = (typeof TOPOLOGY_KINDS)[number];

/** One shape: how many members it takes and which member reads whose report. */
export interface KindEntry {
  readonly kind: TopologyKind;
  readonly minMembers: number;
  readonly maxMembers: number;
  readonly summary: string;
  /** Pairs of member indexes `[from, to]`, from before to. */
  readonly edges: (members: number) => ReadonlyArray<readonly [number, number]>;
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);

const CATALOGUE: readonly KindEntry[] = [
  { kind: 'solo', minMembers: 1, maxMembers: 1, summary: 'One agent does it all.', edges: () => [] },
  {
    kind: 'pipeline',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    summary: 'Each member continues from the one before it and reads its report alone.',
    edges: (members) => range(1, members).map((to) => [to - 1, to] as const),
  },
  {
    kind: 'review',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    summary: 'The first member writes; each other one reviews and corrects, reading the author alone.',
    edges: (members) => range(1, members).map((to) => [0, to] as const),
  },
  {
    kind: 'fan_out',
    minMembers: 3,
    maxMembers: MAX_MEMBERS,
    summary: 'The first member plans, those in the middle each do a part, the last puts the parts together.',
    edges: (members) => range(1, members - 1).flatMap((middle) => [[0, middle] as const, [middle, members - 1] as const]),
  },
  {
    kind: 'panel',
    minMembers: 3,
    maxMembers: MAX_MEMBERS,
    summary: 'All but the last work without reading each other; the last decides between them.',
    edges: (members) => range(0, members - 1).map((from) => [from, members - 1] as const),
  },
  {
    kind: 'relay',
    minMembers: 2,
    maxMembers: MAX_MEMBERS,
    summary: 'Each member reads the reports of all before it.',
    edges: (members) => range(1, members).flatMap((to) => range(0, to).map((from) => [from, to] as const)),
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

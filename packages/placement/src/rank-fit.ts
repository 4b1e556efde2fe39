import type { FitNode, NodeVerdict } from './judge-node.ts';

/** The nodes of a fleet that fit, best first, while single verdicts change. */
export interface FitRanking {
  /** The verdict of each node now, by its place in the fleet. */
  readonly verdicts: readonly NodeVerdict[];
  best(): FitNode | undefined;
  /** Gives one node another verdict. */
  replace(index: number, verdict: NodeVerdict): void;
}

interface Entry {
  readonly index: number;
  readonly node: FitNode;
}

/** Order of two nodes that fit: most free slots, then headroom, then node id; negative when `a` is better. */
export function compareFit(a: FitNode, b: FitNode): number {
  return b.slots - a.slots || b.headroomPercent - a.headroomPercent || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Ranks a fleet as a binary heap: finding the best costs the logarithm of the nodes for each verdict that has changed. */
export function rankFit(judged: readonly NodeVerdict[]): FitRanking {
  const verdicts = [...judged];
  // A sorted list is a heap.
  const heap = verdicts.flatMap((node, index): Entry[] => (node.fit ? [{ index, node }] : [])).sort((a, b) => compareFit(a.node, b.node));

  return {
    verdicts,
    best() {
      // What a verdict was before is left in the heap until it comes up.
      for (let top = heap[0]; top !== undefined; top = heap[0]) {
        if (verdicts[top.index] === top.node) return top.node;
        removeTop(heap);
      }
      return undefined;
    },
    replace(index, verdict) {
      verdicts[index] = verdict;
      if (verdict.fit) insert(heap, { index, node: verdict });
    },
  };
}

function insert(heap: Entry[], entry: Entry): void {
  let at = heap.length;
  while (at > 0) {
    const up = (at - 1) >> 1;
    const parent = heap[up];
    if (parent === undefined || compareFit(parent.node, entry.node) <= 0) break;
    heap[at] = parent;
    at = up;
  }
  heap[at] = entry;
}

function removeTop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = heap[2 * at + 1];
    if (left === undefined) break;
    const right = heap[2 * at + 2];
    const isRight = right !== undefined && compareFit(right.node, left.node) < 0;
    const child = isRight ? right : left;
    if (compareFit(last.node, child.node) <= 0) break;
    heap[at] = child;
    at = 2 * at + (isRight ? 2 : 1);
  }
  heap[at] = last;
}

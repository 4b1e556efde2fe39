import type { Gate } from './plan-gate.ts';

/** What the commit of a phase came to. */
export interface DeliveredChange {
  /** False where the commit would have equalled its base. */
  readonly hasCommit: boolean;
  /** Why paths of the tree were left out of it. */
  readonly leftOut: Iterable<string>;
}

/** Whether a phase whose turns succeeded may be green. `detail` is one sentence. */
export type DeliveryVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'no_change' | 'ignored_only'; readonly detail: string };

/**
 * Holds the gate of a phase against what its delivery would commit. The gate of a round is decided on a node, which has two manifests and no
 * repository: submodules, line endings and ignored files that the base's tree holds can make a commit equal its base all the same.
 */
export function judgeDelivery(gate: Gate | undefined, change: DeliveredChange): DeliveryVerdict {
  if (gate?.requireChange !== true || change.hasCommit) return { ok: true };
  const reasons = [...change.leftOut];
  const isIgnoredOnly = reasons.length > 0 && reasons.every((reason) => reason === 'ignored');
  return isIgnoredOnly
    ? {
        ok: false,
        reason: 'ignored_only',
        detail: 'only ignored files were changed, and the phase needs a change; allow that with allowEmpty',
      }
    : { ok: false, reason: 'no_change', detail: 'there is nothing to commit, and the phase needs a change; allow that with allowEmpty' };
}

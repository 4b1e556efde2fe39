/** How far a passed gate can be relied on. `reported` = said by the VM the agent had worked in; `none` = nothing was checked. */
export type VerificationLevel = 'verified' | 'reported' | 'none';

/** Why a level was given; closed. */
export type VerificationReason = 'fresh_environment' | 'same_vm' | 'no_check' | 'check_not_passed' | 'snapshot_mismatch';

/** What the host knows about the check that was run. */
export interface VerificationFacts {
  /** `fresh-vm` = a new VM or sandbox made from the collected tree; `same-vm` = the agent's own. */
  readonly mode: 'fresh-vm' | 'same-vm';
  readonly check: 'passed' | 'not_passed' | 'none';
  /** Digest of the tree that the check ran on. */
  readonly checkedSnapshot: string;
  /** Digest of the tree that is to be delivered. */
  readonly deliveredSnapshot: string;
}

/** Grades a delivery: only a check that passed in a fresh environment on exactly the delivered tree verifies it. */
export function gradeVerification(facts: VerificationFacts): { readonly level: VerificationLevel; readonly reason: VerificationReason } {
  if (facts.check === 'none') return { level: 'none', reason: 'no_check' };
  if (facts.check === 'not_passed') return { level: 'none', reason: 'check_not_passed' };
  if (facts.checkedSnapshot !== facts.deliveredSnapshot) return { level: 'none', reason: 'snapshot_mismatch' };
  return facts.mode === 'fresh-vm' ? { level: 'verified', reason: 'fresh_environment' } : { level: 'reported', reason: 'same_vm' };
}

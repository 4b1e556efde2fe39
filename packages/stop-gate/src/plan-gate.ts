import { MAX_CHECK_BYTES } from './limits.ts';
import { StopGateError } from './reasons.ts';

/** What a phase is about. */
export type PhaseKind = 'research' | 'coding' | 'benchmark' | 'security_scan' | 'preview';

/** The part of a phase that decides its gate. */
export interface GatedPhase {
  readonly kind: PhaseKind;
  /** True where the phase may end without a change; anything else requires one of a coding phase. */
  readonly allowEmpty?: boolean | null | undefined;
  /** A shell command that must exit 0; blank is none. */
  readonly doneWhenCheck?: string | null | undefined;
}

/** What must hold before a turn may succeed; at least one of its two parts is set. */
export interface Gate {
  readonly requireChange: boolean;
  /** Shell command, trimmed, run by `/bin/sh -c` from the root of the tree. */
  readonly check?: string;
}

/**
 * The gate of a phase, or undefined where there is nothing to enforce (and then no hook, settings entry or process).
 * Throws `gate_invalid` on a check with a NUL or of more than {@link MAX_CHECK_BYTES} bytes.
 */
export function planGate(phase: GatedPhase): Gate | undefined {
  const requireChange = phase.kind === 'coding' && phase.allowEmpty !== true;
  const check = phase.doneWhenCheck?.trim() ?? '';
  if (check === '') return requireChange ? { requireChange } : undefined;
  refuseUnusableCheck(check);
  return { requireChange, check };
}

/**
 * The gate of one turn of a composed run: the check stays, the change requirement goes, since a verifier changes nothing by design.
 * The whole delivery of the phase must still meet the phase's own gate.
 */
export function planTurnGate(gate: Gate | undefined): Gate | undefined {
  return gate?.check === undefined ? undefined : { requireChange: false, check: gate.check };
}

function refuseUnusableCheck(check: string): void {
  if (check.includes('\0')) throw new StopGateError('gate_invalid', 'the check command holds a NUL character');
  const bytes = new TextEncoder().encode(check).length;
  if (bytes > MAX_CHECK_BYTES) {
    throw new StopGateError('gate_invalid', `the check command has ${bytes} bytes; the limit is ${MAX_CHECK_BYTES}`);
  }
}

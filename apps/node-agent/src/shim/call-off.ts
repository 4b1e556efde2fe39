import type { AttemptContext } from './attempt-context.ts';
import type { ModelGate } from './model-gate.ts';
import type { AttemptRun } from './run-attempt.ts';

/**
 * Calls an attempt off: what its VM holds is collected, and nothing is let out from now on, though its guest may not have heard of it yet, or
 * may not listen. The lease ends with it, so that no later step of the attempt opens a way out again.
 */
export function callOff(
  { lease, gate, model }: Pick<AttemptContext, 'lease' | 'gate'> & { readonly model: Pick<ModelGate, 'close'> },
  run: Pick<AttemptRun, 'interrupt'>,
): void {
  run.interrupt({ type: 'cancel' });
  lease.end();
  void gate.close();
  model.close();
}

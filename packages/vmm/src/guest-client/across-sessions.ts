import type { ExecEnd } from '@firecrew/protocol';
import type { Vm } from '../port/driver.ts';
import { OUTER_GRACE_MS, outerDeadlineMs } from './deadlines.ts';
import { type ExecRequest, followExec, isLinkError, startExec, waitExec } from './execs.ts';
import { GuestRefusal } from './read-body.ts';

/**
 * Starts an exec and waits for its end, over as many sessions as that takes. Throws like `startExec` and `waitExec`, and like
 * `vm.session()` when the guest does not dial again.
 */
export async function runExec(vm: Pick<Vm, 'session'>, exec: ExecRequest): Promise<ExecEnd> {
  await startOnce(vm, exec);
  const lastWaitAt = performance.now() + outerDeadlineMs(exec.timeoutMs);
  for (;;) {
    try {
      const left = Math.max(0, lastWaitAt - performance.now() - OUTER_GRACE_MS);
      return await waitExec(await vm.session(), exec.id, left);
    } catch (error) {
      // A guest that drops its link for ever gets no more time by that.
      if (!isLinkError(error) || performance.now() > lastWaitAt) throw error;
    }
  }
}

/** The output of an exec from `offset` to its end, over as many sessions as that takes; no byte twice, none left out. */
export async function* followAcrossSessions(vm: Pick<Vm, 'session'>, id: string, offset = 0): AsyncGenerator<Buffer> {
  let at = offset;
  for (;;) {
    try {
      for await (const part of await followExec(await vm.session(), id, at)) {
        if (!Buffer.isBuffer(part)) continue;
        at += part.length;
        yield part;
      }
      return;
    } catch (error) {
      if (!isLinkError(error)) throw error;
    }
  }
}

async function startOnce(vm: Pick<Vm, 'session'>, exec: ExecRequest): Promise<void> {
  for (let isRepeated = false; ; isRepeated = true) {
    try {
      await startExec(await vm.session(), exec);
      return;
    } catch (error) {
      // The answer to the first try was lost with its session, and the exec runs.
      if (isRepeated && error instanceof GuestRefusal && error.guestCode === 'exec_id_taken') return;
      if (!isLinkError(error)) throw error;
    }
  }
}

import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import type { ExecEnd } from '@firecrew/protocol';
import { followExec, GuestRefusal, isLinkError, killExec, startExec, type Vm, waitExec } from '@firecrew/vmm';
import { describeExit } from './describe-exit.ts';

/** A command in a VM. */
export interface Command {
  /** Never used twice in one VM. */
  readonly id: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>> | null;
  readonly timeoutMs: number;
  readonly outputLimitBytes: number;
  readonly onOutput: (bytes: Uint8Array) => void;
}

/** How long an aborted command may take to be killed before the abort goes on without it. */
const KILL_TIMEOUT_MS = 5_000;

/**
 * Runs a command to its end with its output, over as many links as it takes: a dropped link is dialled again by the guest, and
 * the output goes on where it stopped. An abort kills the command. Throws `guest_lost` when the VM is gone, `guest_refused` when nothing was run.
 */
export async function runCommand(vm: Vm, command: Command, signal: AbortSignal): Promise<ExecEnd> {
  const gone = vm.exited.then((exit): never => {
    throw new CodedError('guest_lost', `the VM ended (${describeExit(exit)}) while "${command.id}" ran`, {
      id: vm.id,
    });
  });
  gone.catch(() => undefined);
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(new CodedError('command_aborted', `"${command.id}" was stopped`, { id: vm.id })), {
      once: true,
    });
  });
  aborted.catch(() => undefined);
  try {
    return await Promise.race([drive(vm, command, signal), gone, aborted]);
  } catch (error) {
    if (signal.aborted) await stopCommand(vm, command.id);
    throw error;
  }
}

async function drive(vm: Vm, command: Command, signal: AbortSignal): Promise<ExecEnd> {
  await overLinks(vm, signal, async (session) => {
    try {
      await startExec(session, command);
    } catch (error) {
      // The answer to an earlier start was lost with its link: the command runs.
      if (!(error instanceof GuestRefusal && error.guestCode === 'exec_id_taken')) throw error;
    }
  });
  let offset = 0;
  await overLinks(vm, signal, async (session) => {
    for await (const part of await followExec(session, command.id, offset)) {
      if (!(part instanceof Uint8Array)) continue;
      offset += part.length;
      command.onOutput(part);
    }
  });
  return await overLinks(vm, signal, (session) => waitExec(session, command.id, command.timeoutMs));
}

/** Repeats `work` over the next link whenever the present one is lost. */
async function overLinks<T>(vm: Vm, signal: AbortSignal, work: (session: LinkSession) => Promise<T>): Promise<T> {
  for (;;) {
    const session = await vm.session();
    try {
      return await work(session);
    } catch (error) {
      if (!isLinkError(error) || signal.aborted) throw error;
      await session.closed;
    }
  }
}

/** Kills a command as far as the guest can still be asked; the VM is destroyed soon after in any case. */
async function stopCommand(vm: Vm, id: string): Promise<void> {
  try {
    const session = await vm.session(KILL_TIMEOUT_MS);
    await killExec(session, id);
    await waitExec(session, id, KILL_TIMEOUT_MS);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
  }
}

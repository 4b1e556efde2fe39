import { codeOf } from '@firecrew/base';
import { isLinkError } from '../guest-client/execs.ts';
import { shutdownGuest } from '../guest-client/simple-requests.ts';
import type { BootedMachine, Machine } from './machine.ts';

/** Time a guest has to sync its disk and reset after its agent was asked to, in `ms`; emulation is slow. */
export const GUEST_SHUTDOWN_MS = 5000;
/** Time a guest has after its pid 1 was asked, in `ms`: of that the agent gets 5 s, if it does not end. */
export const GUEST_INIT_MS = 8000;
/** Time a VMM has to end after it was asked to, in `ms`. */
export const VMM_QUIT_MS = 2000;

/** Times of the ways by which a machine is stopped, in `ms`. */
export interface StopTimes {
  readonly agentMs: number;
  readonly initMs: number;
  readonly quitMs: number;
}

const TIMES: StopTimes = { agentMs: GUEST_SHUTDOWN_MS, initMs: GUEST_INIT_MS, quitMs: VMM_QUIT_MS };

/** One way to ask for an end; false where nothing will come of it. */
interface Way {
  readonly ask: () => Promise<boolean>;
  readonly graceMs: number;
}

/**
 * Ends a machine: the guest agent is asked, then the guest's pid 1, so that the disk is synced, then the VMM itself; each has its time, and
 * what is there after that is killed. A way that is missing or refused takes no time. Settles when the machine is gone.
 */
export async function stopMachine({ endpoint, machine }: BootedMachine, times: StopTimes = TIMES): Promise<void> {
  const { liveSession } = endpoint;
  const { askToEnd, askToQuit } = machine;
  const ways: Way[] = [];
  if (liveSession !== undefined) ways.push({ ask: () => askAgent(liveSession, machine, times.agentMs), graceMs: times.agentMs });
  if (askToEnd !== undefined) ways.push({ ask: () => wasTaken(askToEnd), graceMs: times.initMs });
  if (askToQuit !== undefined) ways.push({ ask: () => wasTaken(askToQuit), graceMs: times.quitMs });
  if (await endsWithin(machine, 0)) return;
  for (const { ask, graceMs } of ways) if ((await ask()) && (await endsWithin(machine, graceMs))) return;
  await machine.kill();
}

/** Whether the guest may be on its way out. One that refused, or has had its grace already, is not waited for. */
async function askAgent(session: NonNullable<BootedMachine['endpoint']['liveSession']>, machine: Machine, ms: number): Promise<boolean> {
  try {
    await shutdownGuest(session, ms);
    machine.expectEnd();
    return true;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    // It may end before its answer has left.
    return isLinkError(error);
  }
}

/** Whether the VMM has taken the wish. */
async function wasTaken(ask: () => Promise<void>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}

/** Whether a machine is gone within some `ms`. */
export async function endsWithin({ exited }: Pick<Machine, 'exited'>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = await Promise.race([exited.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}

import { type CommandReport, type Exhaustion, findShortages, judgeExhaustion } from '@firecrew/mission';
import type { ExecEnd } from '@firecrew/protocol';
import type { AttemptContext, AttemptState, Shortage } from './attempt-context.ts';

/** What of an attempt is looked at, and told. */
export interface ShortageContext {
  readonly spec: Pick<AttemptContext['spec'], 'demand'>;
  readonly state: Pick<AttemptState, 'isolation'>;
  readonly events: Pick<AttemptContext['events'], 'add'>;
}

/** Tells what a command ran out of, and gives what it failed for; null where it did not, or not for that. `what` names the command for a person. */
export function noteShortages({ spec, state, events }: ShortageContext, what: string, end: ExecEnd): Shortage | null {
  const report: CommandReport = {
    failed: end.kind !== 'exited' || end.exitCode !== 0,
    ownKernel: state.isolation === 'vm',
    memoryKills: end.memoryKills,
    diskRoomBytes: end.diskRoomBytes,
  };
  const { memoryMib, diskMib } = spec.demand;
  const words: Readonly<Record<Exhaustion, string>> = {
    guest_out_of_memory: `memory ran out while ${what} ran: the guest's kernel killed ${report.memoryKills ?? 0} of its processes (it has ${memoryMib} MiB)`,
    guest_disk_full: `a disk was full when ${what} ended: ${report.diskRoomBytes ?? 0} bytes were left (of ${diskMib} MiB)`,
  };
  for (const code of findShortages(report)) events.add({ kind: 'notice', level: 'warning', code, message: words[code] });
  const reason = judgeExhaustion(report);
  return reason === undefined ? null : { reason, message: words[reason] };
}

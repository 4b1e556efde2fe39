import type { DueTurn } from './execution.ts';

/** The task text of a turn: its role, the mission's task and, only after earlier turns, that their work is there and what they reported. */
export function composeTask(turn: Pick<DueTurn, 'role' | 'round' | 'earlier' | 'sees'>, missionTask: string, crewSize: number): string {
  const task = missionTask.trim();
  if (crewSize <= 1) return `${task}\n`;
  const parts = [`Your role: ${turn.role}`, task];
  if (turn.sees.length > 0) {
    parts.push(
      'The working tree you are given already holds the work of the turns before yours. Look at it first, build on it, and repeat nothing that is done.',
    );
  }
  if (turn.round > 1) parts.push(`This is your turn number ${turn.round}; your own last report is among those below.`);
  for (const report of turn.earlier) {
    const text = report.report.trim();
    if (text === '') continue;
    const which = report.round > 1 ? `, turn ${report.round}` : '';
    parts.push(`Closing report of ${report.role} (${report.nodeId}${which}), as they wrote it:\n\n${text}`);
  }
  return `${parts.join('\n\n')}\n`;
}

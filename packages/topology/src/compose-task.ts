import type { DueTurn } from './execution.ts';

/** The task text of a turn: its role, the mission's task and, only after earlier turns, that their work is there and what they reported. */
export function composeTask(turn: Pick<DueTurn, 'step' | 'role' | 'earlier'>, missionTask: string, crewSize: number): string {
  const task = missionTask.trim();
  if (crewSize <= 1) return `${task}\n`;
  const parts = [`Your role: ${turn.role}`, task];
  if (turn.step > 0) {
    parts.push(
      'The working tree you are given already holds the work of the turns before yours. Look at it first, build on it, and repeat nothing that is done.',
    );
  }
  for (const report of turn.earlier) {
    const text = report.report.trim();
    if (text !== '') parts.push(`Closing report of ${report.role} (${report.nodeId}), as they wrote it:\n\n${text}`);
  }
  return `${parts.join('\n\n')}\n`;
}

import { EXIT_CODE, type MissionAggregate, ruleOf } from '@firecrew/mission';
import type { MissionEnd } from '@firecrew/protocol';
import { type MissionRow, type Transaction, tables } from '@firecrew/store';
import { eq } from 'drizzle-orm';

/** How a mission ended: its last phase's outcome and delivery, the hosts that were refused, and the exit code of the command. */
export async function endOf(
  tx: Transaction,
  _row: MissionRow,
  mission: MissionAggregate,
): Promise<{ kind: 'mission.ended'; end: MissionEnd }> {
  const rows = await tx
    .select({ id: tables.phases.id, delivery: tables.phases.delivery })
    .from(tables.phases)
    .where(eq(tables.phases.missionId, mission.id));
  const last = mission.phases.findLast((phase) => phase.outcome !== null);
  const delivered = mission.phases.findLast((phase) => rows.some((row) => row.id === phase.id && row.delivery?.commit != null));
  const delivery = rows.find((row) => row.id === (delivered ?? last)?.id)?.delivery ?? null;
  const outcome = last?.outcome ?? null;
  const exitCode =
    mission.state === 'completed'
      ? EXIT_CODE.completed
      : mission.state === 'cancelled'
        ? EXIT_CODE.cancelled
        : outcome === null
          ? EXIT_CODE.failed
          : Math.max(ruleOf(outcome).exitCode, EXIT_CODE.failed);
  return {
    kind: 'mission.ended',
    end: { missionState: mission.state, outcome, exitCode, detail: last?.detail ?? '', delivery, denied: await deniedHosts(tx, mission) },
  };
}

async function deniedHosts(tx: Transaction, mission: MissionAggregate): Promise<MissionEnd['denied']> {
  const denied = new Map<string, MissionEnd['denied'][number]>();
  for (const turn of mission.turns) {
    const rows = await tx.select({ result: tables.attempts.result }).from(tables.attempts).where(eq(tables.attempts.turnId, turn.id));
    for (const item of rows.flatMap((row) => row.result?.egress.denied ?? [])) {
      const key = `${item.host}:${item.port ?? ''}:${item.reason}`;
      const known = denied.get(key);
      denied.set(key, { ...item, connections: item.connections + (known?.connections ?? 0) });
    }
  }
  return [...denied.values()];
}

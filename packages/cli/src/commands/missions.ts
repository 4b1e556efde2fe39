import type { MissionSummary, MissionView } from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { describeOutcome } from '../render/describe-outcome.ts';
import { describeReason } from '../render/describe-reason.ts';
import { renderWarning } from '../render/render-warning.ts';
import { renderTable } from '../render/table.ts';
import { findMission } from '../run/find-mission.ts';
import { type CommandContext, type Connection, connectServer } from './context.ts';

/** Refused targets that `show` names. */
const MAX_DENIED = 5;

/** Runs `work` with a client of this home's server, which is started where it is missing. */
export async function withServer(context: CommandContext, work: (connection: Connection) => Promise<number>): Promise<number> {
  const connection = await connectServer(context);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

/** `firecrew missions` */
export async function missionsCommand(
  context: CommandContext,
  options: { readonly limit: string; readonly json: boolean },
): Promise<number> {
  const limit = /^[1-9]\d{0,2}$/.test(options.limit) ? Number(options.limit) : 0;
  if (limit < 1 || limit > 500) throw new UsageError('usage_wrong', `--limit ${options.limit} is not a number from 1 to 500`);
  return await withServer(context, async ({ client }) => {
    const missions = await client.listMissions({ limit });
    if (options.json) context.out.line(JSON.stringify(missions));
    else for (const line of renderMissions(missions)) context.out.line(line);
    return 0;
  });
}

/** Missions as a table. */
export function renderMissions(missions: readonly MissionSummary[]): string[] {
  if (missions.length === 0) return ['no missions yet; start one with: firecrew run --help'];
  const rows = missions.map((mission) => [
    mission.id,
    mission.state,
    mission.createdAt.slice(0, 16).replace('T', ' '),
    cleanLine(mission.branch ?? '-', 60),
    cleanLine(mission.title, 60),
  ]);
  return renderTable(['mission', 'state', 'created (UTC)', 'branch', 'title'], rows);
}

/** `firecrew show ID` */
export async function showCommand(context: CommandContext, id: string, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const mission = await client.mission(await findMission(client, id));
    if (json) context.out.line(JSON.stringify(mission));
    else for (const line of renderMission(mission)) context.out.line(line);
    return 0;
  });
}

/** Characters of an attempt's detail that its row shows; a longer one is told whole below. */
const DETAIL_COLUMN_CHARS = 100;

/** A mission with its phases and attempts, for people. */
export function renderMission(mission: MissionView): string[] {
  const lines = [
    `${mission.id}  ${mission.state}  ${cleanLine(mission.title)}`,
    `created ${mission.createdAt}${mission.endedAt === null ? '' : `, ended ${mission.endedAt}`}`,
  ];
  if (mission.baseCommit !== null)
    lines.push(`base    ${mission.baseCommit}${mission.baseSynthetic ? ' (made of uncommitted changes)' : ''}`);
  if (mission.learning !== undefined)
    lines.push(
      `learning run, ${mission.learning.withCredentials ? 'with credentials' : 'without credentials'}: it reaches more than missions do; what it needs: firecrew policy learn ${mission.id}`,
    );
  for (const warning of mission.warnings ?? []) lines.push(renderWarning(warning));
  lines.push(...deniedLines(mission));
  if (mission.seat) lines.push(`seat    ${mission.seat.role} (${mission.seat.id}), key ${mission.seat.keyId}`);
  if (mission.waiting !== null) lines.push(`waiting ${cleanLine(mission.waiting)}`);
  for (const phase of mission.phases) {
    const outcome = phase.outcome === null ? '' : `: ${describeOutcome(phase.outcome)}`;
    lines.push('', `phase ${phase.position + 1}  ${phase.id}  ${phase.kind}  ${phase.state}${outcome}`);
    const rows = phase.attempts.map((attempt) => [
      `${attempt.turnId}.${attempt.attempt}`,
      attempt.outcome === null ? attempt.state : describeOutcome(attempt.outcome),
      attempt.startedAt?.slice(11, 19) ?? '-',
      attempt.endedAt?.slice(11, 19) ?? '-',
      cleanLine(attempt.detail, DETAIL_COLUMN_CHARS),
    ]);
    if (rows.length > 0) lines.push(...renderTable(['attempt', 'outcome', 'started', 'ended', 'detail'], rows).map((line) => `  ${line}`));
    for (const { turnId, attempt, detail } of phase.attempts) {
      const whole = cleanLine(detail);
      if (whole.length > DETAIL_COLUMN_CHARS) lines.push(`  ${turnId}.${attempt}: ${whole}`);
    }
    const { delivery } = phase;
    if (delivery === null) continue;
    lines.push(
      `  ${delivery.state.replaceAll('_', ' ')}: ${cleanLine(delivery.branch ?? '-')} ${delivery.commit ?? ''} ${delivery.verified ? 'verified' : 'not verified'}`,
    );
    if (delivery.pushed === 'awaiting_approval')
      lines.push(`  awaits approval: ${cleanLine(delivery.pushDetail, 1_000)}; after a look: firecrew approve ${mission.id}`);
  }
  return lines;
}

/** What a mission that has ended was refused, counted; the whole of it is told by `firecrew policy explain`. */
function deniedLines({ id, end }: MissionView): string[] {
  if (end === null || end.denied.length === 0) return [];
  const shown = end.denied.slice(0, MAX_DENIED).map(({ host, port, reason, connections }) => {
    const target = `${cleanLine(host, 120)}${port === null ? '' : `:${port}`}`;
    return `denied  ${target}, ${connections} times (${describeReason(reason)})`;
  });
  const more = end.denied.length - shown.length;
  return [...shown, `denied  ${more === 0 ? '' : `${more} hosts more; `}what would allow it: firecrew policy explain ${id}`];
}

/** `firecrew cancel ID` */
export async function cancelCommand(context: CommandContext, id: string, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const mission = await client.cancel(await findMission(client, id));
    context.out.line(json ? JSON.stringify(mission) : `${mission.id} is being cancelled; what its agent did is collected`);
    return 0;
  });
}

/** `firecrew retry ID` */
export async function retryCommand(context: CommandContext, id: string, phase: string | undefined, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const missionId = await findMission(client, id);
    const reply = await client.retry(missionId, phase);
    context.out.line(
      json ? JSON.stringify(reply) : `${missionId}: phase ${reply.phaseId} runs again; later phases reopened: ${reply.reopened}`,
    );
    return 0;
  });
}

/** `firecrew approve ID` */
export async function approveCommand(context: CommandContext, id: string, phase: string | undefined, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const mission = await client.approve(await findMission(client, id), phase);
    const next = mission.repository === 'upload' ? `; push it with: firecrew fetch ${mission.id} --push REMOTE` : '';
    context.out.line(json ? JSON.stringify(mission) : `${mission.id} is approved${next}`);
    return 0;
  });
}

import { resolve } from 'node:path';
import { builtinBackends, findBackend } from '@firecrew/backend';
import { BUDGET_DENIALS, POLICY_PARTS, reachOf } from '@firecrew/egress-policy';
import { describeReach, type LoadedPolicy, loadPolicyFile, policyOfCeiling } from '@firecrew/policy-file';
import type { PolicyExplanation, PolicyVerdict } from '@firecrew/protocol';
import { EXIT, UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import { type AuditOwner, AuditRecords } from '../run/audit-records.ts';
import { findMission } from '../run/find-mission.ts';
import { readBackendFiles } from '../settings/backend-files.ts';
import type { Settings } from '../settings/settings.ts';
import { type CommandContext, settingsHere } from './context.ts';
import { allEvents } from './follow.ts';
import { withServer } from './missions.ts';

/** What an allowed target and a refused one end with; a question that cannot be answered ends with 2. */
const ANSWER = { allowed: EXIT.completed, refused: EXIT.failed } as const;

interface Target {
  readonly host: string;
  readonly port: number;
}

/** `firecrew policy check HOST[:PORT]`: the verdict with its rule, and an exit code. Nothing is run, looked up or dialled. */
export async function policyCheckCommand(
  context: CommandContext,
  target: string,
  options: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { host, port } = readTarget(target);
  const part = POLICY_PARTS.find((name) => name === options.phase) ?? 'run';
  const allow = Array.isArray(options.allow) ? options.allow.filter((entry) => typeof entry === 'string') : [];
  const tell = (verdict: PolicyVerdict): number => {
    if (options.json === true) context.out.line(JSON.stringify(verdict));
    else for (const line of renderVerdict(verdict, host)) context.out.line(line);
    return verdict.verdict === 'allowed' ? ANSWER.allowed : ANSWER.refused;
  };
  if (typeof options.mission === 'string') {
    if (typeof options.policy === 'string' || allow.length > 0)
      throw new UsageError('usage_wrong', 'a mission is judged by the policy of its server and by what it asked for', {
        action: 'Leave out --policy and --allow, or --mission.',
      });
    const { mission } = options;
    return await withServer(context, async ({ client }) => {
      const id = await findMission(client, mission);
      return tell(await client.checkPolicy(id, { host, port, part }));
    });
  }
  const settings = settingsHere(context);
  const backends = [...builtinBackends, ...readBackendFiles(settings.backends)];
  const backend = findBackend(typeof options.backend === 'string' ? options.backend : 'command', backends);
  const file = typeof options.policy === 'string' ? options.policy : undefined;
  const { policy, source } = await localPolicy(context, settings, { file, backends: backends.map(({ name }) => name) });
  const request = { backend: backend.name, backendHosts: backend.hosts, asked: { setup: allow, run: allow } };
  const [unusable] = reachOf(policy, request, part).unusable;
  if (unusable !== undefined) throw new UsageError('usage_wrong', `--allow ${unusable.entry}: ${unusable.message}`, { id: unusable.entry });
  return tell(describeReach({ policy, request, part, host, port }, source));
}

/** The policy of a file that is named, else that of the settings. Throws `policy_unreadable` and `policy_invalid`. */
async function localPolicy(
  context: CommandContext,
  settings: Settings,
  { file, backends }: { readonly file: string | undefined; readonly backends: readonly string[] },
): Promise<LoadedPolicy> {
  const path = file === undefined ? settings.policyFile : resolve(context.cwd, file);
  if (path == null) return policyOfCeiling(settings.ceiling ?? null);
  return await loadPolicyFile(path, { backends, env: context.env });
}

/** `HOST` or `HOST:PORT`; an address may stand in brackets, so that it can be asked about, too. */
export function readTarget(text: string): Target {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[2] === undefined ? 443 : Number(match[2]);
  if (match?.[1] === undefined || match[1] === '' || port < 1 || port > 65_535)
    throw new UsageError('usage_wrong', `${JSON.stringify(text)} is not HOST or HOST:PORT`, {
      id: text,
      action: 'Write a host name alone, or with a port from 1 to 65535.',
    });
  return { host: match[1], port };
}

const REMEDIES = {
  mission: (entry: string, part: string) => `the mission need only ask: ${part === 'setup' ? '--setup-allow' : '--allow'} ${entry}`,
  operator: (entry: string) => `the operator would have to raise the ceiling: ${entry}`,
  both: (entry: string, part: string) =>
    `the operator would have to name ${entry}, and the mission to ask for it (${part === 'setup' ? '--setup-allow' : '--allow'})`,
} as const;

/** A verdict for people: the first line says it, the others why. `asked` stands where the host has no name, such as an address. */
export function renderVerdict(verdict: PolicyVerdict, asked: string): string[] {
  const { host, port, part, reason, rule, origin, remedy, policy } = verdict;
  const lines = [`${verdict.verdict}  ${cleanLine(host ?? asked, 260)}:${port}  ${part}  ${reason}`];
  if (verdict.verdict === 'allowed') lines.push(`rule    ${rule ?? '-'} (${origin ?? '-'})`);
  else if (rule !== null) lines.push(`nearest ${rule}`);
  if (remedy !== null) lines.push(`to allow it: ${REMEDIES[remedy.by](remedy.entry, part)}`);
  return [...lines, `policy  ${cleanLine(policy, 300)}`];
}

/** `firecrew policy explain ID` */
export async function policyExplainCommand(context: CommandContext, id: string, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const explanation = await client.explainPolicy(await findMission(client, id));
    if (json) context.out.line(JSON.stringify(explanation));
    else for (const line of renderExplanation(explanation)) context.out.line(line);
    return 0;
  });
}

/** What a mission reached and was refused, for people. */
export function renderExplanation(explanation: PolicyExplanation): string[] {
  const { reached, refused, policy, open = [], totals, learning = false } = explanation;
  const name = ({ host, port }: { host: string | null; port: number | null }) =>
    `${cleanLine(host ?? '(no name)', 120)}${port === null ? '' : `:${port}`}`;
  const lines: string[] = learning ? ['a learning run: it reached more than missions may', ''] : [];
  if (reached.length === 0) lines.push('nothing was reached');
  else {
    const rows = reached.map((row) => [name(row), row.purpose, `${row.connections}`, `${row.bytesIn}`, `${row.bytesOut}`, row.rule ?? '-']);
    lines.push(...renderTable(['reached', 'by', 'tunnels', 'bytes in', 'bytes out', 'rule'], rows));
  }
  if (open.length > 0) {
    const rows = open.map((row) => [
      name(row),
      row.purpose,
      cleanLine(row.address ?? '-', 64),
      row.since.slice(0, 19).replace('T', ' '),
      row.bytesIn === null ? '-' : `${row.bytesIn}`,
      row.bytesOut === null ? '-' : `${row.bytesOut}`,
      row.rule ?? '-',
    ]);
    lines.push('', ...renderTable(['open now', 'by', 'address', 'since (UTC)', 'bytes in', 'bytes out', 'rule'], rows));
  }
  lines.push('');
  if (refused.length === 0) lines.push('nothing was refused');
  else {
    const rows = refused.map((row) => [name(row), row.purpose, `${row.connections}`, row.reason, remedyOf(row)]);
    lines.push(...renderTable(['refused', 'by', 'times', 'reason', 'to allow it'], rows));
  }
  if (explanation.truncated) lines.push('', 'there is more than is shown; all of it: firecrew events ID --json');
  if (totals !== undefined)
    lines.push(
      '',
      `in all ${totals.tunnels} tunnels, ${totals.refusals} refusals, ${totals.bytesIn} bytes in, ${totals.bytesOut} bytes out`,
    );
  return [...lines, '', `by the policy of now: ${cleanLine(policy.source, 300)} (${policy.digest.slice(0, 12)})`];
}

/** `firecrew policy audit ID`: every connection of the stored audit, as JSON of one line, with whom it was for. */
export async function policyAuditCommand(context: CommandContext, id: string): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const missionId = await findMission(client, id);
    const records = new AuditRecords();
    let owner = await client.mission(missionId);
    for await (const event of allEvents(client, missionId, 0)) {
      // An attempt that was made meanwhile is in no view of before.
      if (event.body.kind === 'turn.placed' && !isKnown(owner, event.body)) owner = await client.mission(missionId);
      const record = records.add(event, owner);
      if (record !== undefined) context.out.line(JSON.stringify(record));
    }
    for (const record of records.rest()) context.out.line(JSON.stringify(record));
    return 0;
  });
}

function isKnown({ phases }: AuditOwner, { turnId, attempt }: { readonly turnId: string; readonly attempt: number }): boolean {
  return phases.some(({ attempts }) => attempts.some((one) => one.turnId === turnId && one.attempt === attempt));
}

function remedyOf(row: PolicyExplanation['refused'][number]): string {
  if (BUDGET_DENIALS.some((reason) => reason === row.reason)) return `budgets of the policy: ${cleanLine(row.rule ?? '', 300)}`;
  if (row.allowedNow) return 'allowed by the policy of now';
  return row.remedy === null ? '-' : REMEDIES[row.remedy.by](row.remedy.entry, row.purpose === 'setup' ? 'setup' : 'run');
}

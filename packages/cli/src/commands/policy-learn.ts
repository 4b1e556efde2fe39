import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { type LearnedEntry, type LearnedPolicy, learnPolicy, readPolicyText } from '@firecrew/policy-file';
import type { PolicyExplanation } from '@firecrew/protocol';
import { GIT_LOCAL_TIMEOUT_MS, runGit } from '@firecrew/workspace';
import { cleanLine } from '../render/clean-text.ts';
import { findMission } from '../run/find-mission.ts';
import { type CommandContext, settingsOf } from './context.ts';
import { withServer } from './missions.ts';

/** How a policy is learned; options as the command line gives them. */
export interface LearnOptions {
  readonly policy: string | undefined;
  readonly rule: string;
  readonly out: string | undefined;
  readonly json: boolean;
}

const MAX_DIFF_BYTES = 2 * 1024 * 1024;
const NEW_FILE = 'firecrew.policy.yaml';

/**
 * `firecrew policy learn ID`: what a mission was refused by name, and what it reached as a learning run, as the least change of a policy that would
 * allow it to ordinary ones. It is printed as a diff and put nowhere but into the new file `--out`.
 */
export async function policyLearnCommand(context: CommandContext, id: string, options: LearnOptions): Promise<number> {
  return await withServer(context, async ({ client, home }) => {
    const missionId = await findMission(client, id);
    const explanation = await client.explainPolicy(missionId);
    const { entries, left } = learnable(explanation);
    const file = options.policy === undefined ? settingsOf(context, home).policyFile : resolve(context.cwd, options.policy);
    const text = file == null ? undefined : await readPolicyText(file);
    const learned = learnPolicy(text, file ?? NEW_FILE, { rule: options.rule, entries });
    if (options.out !== undefined) await writeNew(resolve(context.cwd, options.out), learned.text);
    const diff = await diffOf(learned, basename(file ?? NEW_FILE));
    if (options.json)
      context.out.line(JSON.stringify({ missionId, file: file ?? null, ...learned, left, truncated: explanation.truncated, diff }));
    else {
      if (diff !== '') context.out.line(diff.trimEnd());
      for (const note of notesOf(learned, left, explanation.truncated)) context.out.note(note);
    }
    return 0;
  });
}

/** What of the refusals, and of what was reached beyond the policy, a policy could allow, and what it could not, with the reason. */
export function learnable(explanation: Pick<PolicyExplanation, 'reached' | 'refused'>): {
  readonly entries: readonly LearnedEntry[];
  readonly left: readonly { readonly host: string | null; readonly port: number | null; readonly reason: string }[];
} {
  // A server of before learning runs says nothing of what was reached: its missions reached what they were allowed.
  const reached = explanation.reached.flatMap(({ allowedNow = true, remedy = null, ...row }) =>
    allowedNow ? [] : [{ ...row, remedy, reason: 'reached' }],
  );
  const open = [...reached, ...explanation.refused.filter((row) => !row.allowedNow)];
  return {
    // A rule that exists is asked for by its name, and needs no other one.
    entries: open.flatMap(({ remedy, purpose }) =>
      remedy === null || remedy.entry.startsWith('rule:') ? [] : [{ part: purpose === 'setup' ? 'setup' : 'run', entry: remedy.entry }],
    ),
    left: open.flatMap(({ remedy, host, port, reason }) => {
      if (remedy === null) return [{ host, port, reason }];
      return remedy.entry.startsWith('rule:') ? [{ host, port, reason: `ask for ${remedy.entry}` }] : [];
    }),
  };
}

/** What to know of a learned policy beside its diff. */
export function notesOf(learned: LearnedPolicy, left: ReturnType<typeof learnable>['left'], truncated: boolean): string[] {
  const asks = learned.rules.map(({ name, part }) => `${part === 'setup' ? '--setup-allow' : '--allow'} rule:${name}`);
  return [
    learned.rules.length === 0
      ? 'nothing was refused, or reached beyond the policy, that a policy could allow'
      : `review each host; missions get them by asking: ${asks.join(' ')}. An agent may have stopped at the first host: run again, and learn again`,
    ...left.map(
      ({ host, port, reason }) =>
        `not learned: ${cleanLine(host ?? '(no name)', 260)}${port === null ? '' : `:${port}`} (${cleanLine(reason)})`,
    ),
    ...(truncated ? ['there were more refusals than are counted: learn again after this one is in force'] : []),
  ];
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' });
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause;
    throw new CodedError('file_exists', `${file} is there already and was left as it is`, {
      id: file,
      action: 'Name a new file with --out, and move it into place when it is reviewed.',
      cause,
    });
  }
}

/** The change as git shows it; empty where there is none. */
async function diffOf({ before, text }: LearnedPolicy, name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-policy-'));
  try {
    for (const [side, content] of [
      ['a', before],
      ['b', text],
    ] as const) {
      await mkdir(join(folder, side));
      await writeFile(join(folder, side, name), content);
    }
    const { stdout } = await runGit(['diff', '--no-index', '--no-prefix', '--no-color', '--', join('a', name), join('b', name)], {
      cwd: folder,
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes: MAX_DIFF_BYTES,
      exitCodes: [0, 1],
    });
    return stdout.toString('utf8');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

import { HOOK_CHECK_TIMEOUT_S, MAX_HOOK_BLOCKS, TAP_EVENT_MAX_BYTES } from './limits.ts';
import type { Gate } from './plan-gate.ts';
import { StopGateError } from './reasons.ts';
import { STOP_HOOK } from './stop-hook-text.ts';

/** Files of the hook's state folder, which the agent can write: nothing in them is a verdict. */
export const HOOK_STATE = { blocks: 'blocks', capped: 'capped', log: 'log', output: 'output', feedback: 'feedback' } as const;
/** Files of the hook's read-only configuration folder. */
export const HOOK_CONFIG = {
  check: 'check',
  requireChange: 'require-change',
  base: 'base',
  workspace: 'workspace',
  maxBlocks: 'max-blocks',
  checkTimeout: 'check-timeout',
  answer: 'answer',
} as const;

/** How a refusal is told: by JSON with exit status 0, or by exit status 2 with the text on standard error. */
export type HookAnswer = 'json' | 'exit_2';

/** A file of the configuration folder. */
export interface HookFile {
  readonly name: string;
  readonly text: string;
}

/**
 * The files that configure the Stop hook. The check is a file of its own and never pasted into a script. Both folders lie outside the
 * tree, and the state folder is emptied when the hook is installed. Throws `hook_invalid` for a base that is no commit id, a workspace that
 * is no absolute path of one line, and limits outside 1..99 refusals and 1..{@link HOOK_CHECK_TIMEOUT_S} s.
 */
export function planHookFiles(install: {
  readonly gate: Gate;
  readonly workspace: string;
  readonly baseCommit?: string;
  /** Default {@link MAX_HOOK_BLOCKS}. */
  readonly maxBlocks?: number;
  /** Seconds; default {@link HOOK_CHECK_TIMEOUT_S}. */
  readonly checkTimeoutS?: number;
  /** Default `json`, which no CLI overrules. */
  readonly answer?: HookAnswer;
}): readonly HookFile[] {
  const { maxBlocks = MAX_HOOK_BLOCKS, checkTimeoutS = HOOK_CHECK_TIMEOUT_S, answer = 'json' } = install;
  refuseUnusable(install, maxBlocks, checkTimeoutS);
  const files: HookFile[] = [
    { name: HOOK_CONFIG.workspace, text: `${install.workspace}\n` },
    { name: HOOK_CONFIG.maxBlocks, text: `${maxBlocks}\n` },
    { name: HOOK_CONFIG.checkTimeout, text: `${checkTimeoutS}\n` },
    { name: HOOK_CONFIG.answer, text: `${answer}\n` },
  ];
  if (install.gate.requireChange) files.push({ name: HOOK_CONFIG.requireChange, text: '' });
  if (install.baseCommit !== undefined) files.push({ name: HOOK_CONFIG.base, text: `${install.baseCommit}\n` });
  if (install.gate.check !== undefined) files.push({ name: HOOK_CONFIG.check, text: `${install.gate.check}\n` });
  return files;
}

function refuseUnusable(install: { readonly workspace: string; readonly baseCommit?: string }, maxBlocks: number, timeoutS: number): void {
  const bad = (what: string): StopGateError => new StopGateError('hook_invalid', what);
  if (!/^\/[^\0\n]*$/.test(install.workspace)) throw bad('the workspace of the hook is no absolute path of one line');
  if (install.baseCommit !== undefined && !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(install.baseCommit))
    throw bad('the base of the hook is no full commit id in lower case');
  if (!Number.isInteger(maxBlocks) || maxBlocks < 1 || maxBlocks > 99) throw bad(`${maxBlocks} refusals are not between 1 and 99`);
  if (!Number.isInteger(timeoutS) || timeoutS < 1 || timeoutS > HOOK_CHECK_TIMEOUT_S)
    throw bad(`${timeoutS} s for the check are not between 1 and ${HOOK_CHECK_TIMEOUT_S}`);
}

/**
 * The Stop hook as a POSIX shell script, called as `stop-hook CONFIG STATE` with the event on standard input. It refuses by JSON and
 * exits 0: exit 2 is overruled by the CLI when standard error speaks of a missing file, as test logs do, unless standard output holds a
 * word. It defers while the CLI has background tasks, since it is then called again. What it cannot find out is a refusal, never a pass.
 * Advisory: an agent can switch it off, and the host runs the check itself.
 */
export function stopHookScript(): string {
  return STOP_HOOK;
}

/**
 * The tap as a POSIX shell script, called as `tap-hook FILE` with the event on standard input: it appends the event as one line in one
 * write, prints nothing and always exits 0, since a tool hook that fails talks to the model.
 */
export function tapHookScript(): string {
  return String.raw`#!/bin/sh
# Records one tool event as received. Parsing is the host's.
{
  { head -c ${TAP_EVENT_MAX_BYTES - 1} | tr -d '\r\n'; echo; } | dd obs=${TAP_EVENT_MAX_BYTES} >>"$1"
} >/dev/null 2>&1
exit 0
`;
}

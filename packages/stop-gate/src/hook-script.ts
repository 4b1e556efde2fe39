import { CHECK_FEEDBACK_BYTES, HOOK_CHECK_TIMEOUT_S, MAX_HOOK_BLOCKS, TAP_EVENT_MAX_BYTES } from './limits.ts';
import type { Gate } from './plan-gate.ts';

/** Files of the hook's state folder, which the agent can write: nothing in them is a verdict. */
export const HOOK_STATE = { blocks: 'blocks', capped: 'capped', log: 'log', output: 'output', feedback: 'feedback' } as const;
/** Files of the hook's read-only configuration folder. */
export const HOOK_CONFIG = {
  check: 'check',
  requireChange: 'require-change',
  base: 'base',
  workspace: 'workspace',
  maxBlocks: 'max-blocks',
} as const;

/** A file of the configuration folder. */
export interface HookFile {
  readonly name: string;
  readonly text: string;
}

/**
 * The files that configure the Stop hook. The check is a file of its own and never pasted into a script. Both folders lie outside the
 * tree, and the state folder is emptied when the hook is installed.
 */
export function planHookFiles(install: {
  readonly gate: Gate;
  readonly workspace: string;
  readonly baseCommit?: string;
  readonly maxBlocks?: number;
}): readonly HookFile[] {
  const files: HookFile[] = [
    { name: HOOK_CONFIG.workspace, text: `${install.workspace}\n` },
    { name: HOOK_CONFIG.maxBlocks, text: `${install.maxBlocks ?? MAX_HOOK_BLOCKS}\n` },
  ];
  if (install.gate.requireChange) files.push({ name: HOOK_CONFIG.requireChange, text: '' });
  if (install.baseCommit !== undefined) files.push({ name: HOOK_CONFIG.base, text: `${install.baseCommit}\n` });
  if (install.gate.check !== undefined) files.push({ name: HOOK_CONFIG.check, text: `${install.gate.check}\n` });
  return files;
}

/**
 * The Stop hook as a POSIX shell script, called as `stop-hook CONFIG STATE` with the event on standard input. It refuses by JSON and
 * exits 0: exit 2 is overruled by the CLI when standard error speaks of a missing file, as test logs do. It defers while the CLI has
 * background tasks, since it is then called again. Advisory: an agent can switch it off, and the host runs the check itself.
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

const STOP_HOOK = String.raw`#!/bin/sh
# Refuses an early stop inside the agent's own loop, for quick feedback. The verdict is the host's.
config=$1
state=$2
event=$(tr -d ' \t\r\n')
case $event in
  *'"background_tasks":[{'*) exit 0 ;;
esac

max=$(cat "$config/max-blocks") || exit 3
if [ -e "$state/blocks" ]; then
  blocks=$(cat "$state/blocks")
  case $blocks in
    [0-9] | [1-9][0-9]) ;;
    *) blocks=$max ;;
  esac
else
  blocks=0
fi

note() {
  printf '{"event":"%s","blocks":%s,"reason":"%s","exit":%s}\n' "$1" "$blocks" "$2" "$3" >>"$state/log"
}

# Reads text, writes the inside of a JSON string.
escape() {
  LC_ALL=C tr -d '\000-\010\013-\037\177' |
    LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/	/\\t/g' |
    LC_ALL=C awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}

# refuse REASON EXIT: the text is in the feedback file.
refuse() {
  if [ "$blocks" -ge "$max" ]; then
    : >"$state/capped"
    note cap "$1" "$2"
    exit 0
  fi
  blocks=$((blocks + 1))
  printf '%s\n' "$blocks" >"$state/blocks" || exit 3
  note block "$1" "$2"
  printf '{"decision":"block","reason":"%s"}\n' "$(escape <"$state/feedback")"
  exit 0
}

workspace=$(cat "$config/workspace") && cd "$workspace" || exit 3

if [ -e "$config/require-change" ]; then
  if changes=$(git status --porcelain 2>/dev/null) && head=$(git rev-parse --verify -q 'HEAD^{commit}' 2>/dev/null) &&
    base=$(cat "$config/base" 2>/dev/null) && [ -n "$base" ]; then
    if [ -z "$changes" ] && [ "$head" = "$base" ]; then
      printf '%s\n' 'Nothing in the working tree differs from the commit you started with, and this task needs a change. Make it now. If no change is needed, say so and explain why.' >"$state/feedback"
      refuse no_change null
    fi
  else
    printf '%s\n' 'Whether the repository was changed could not be determined: git gave no answer here. Make sure that "git status" works in the working tree, then finish again.' >"$state/feedback"
    refuse change_unknown null
  fi
fi

if [ -e "$config/check" ]; then
  if timeout -k 1 1 true 2>/dev/null; then
    timeout -k 5 ${HOOK_CHECK_TIMEOUT_S} /bin/sh "$config/check" >"$state/output" 2>&1 </dev/null
  else
    /bin/sh "$config/check" >"$state/output" 2>&1 </dev/null
  fi
  code=$?
  if [ "$code" -ne 0 ]; then
    reason=check_failed
    case $code in
      124 | 137) reason=check_timed_out ;;
    esac
    {
      printf 'The check that decides whether this task is done exited with status %s.\n\nThe check:\n\n' "$code"
      cat "$config/check"
      printf '\nThe end of its output:\n\n'
      tail -c ${CHECK_FEEDBACK_BYTES} "$state/output"
      printf '\n\nFix the cause, then finish again.\n'
    } >"$state/feedback"
    refuse "$reason" "$code"
  fi
fi
note pass none 0
exit 0
`;

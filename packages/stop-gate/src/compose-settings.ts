import { HOOK_TIMEOUT_S } from './limits.ts';
import { StopGateError } from './reasons.ts';

/** Where the guest's hooks lie. Paths hold letters, digits, `/`, `.`, `_` and `-` alone, since a shell reads them. */
export interface HookParts {
  /** The Stop hook; absent where nothing is enforced. */
  readonly gate?: { readonly script: string; readonly config: string; readonly state: string };
  /** The tool tap; absent where nothing is recorded. */
  readonly tap?: { readonly script: string; readonly file: string };
}

/** One hook of a settings document. */
export interface HookCommand {
  readonly type: 'command';
  readonly command: string;
  /** Seconds. */
  readonly timeout: number;
}

/** A settings document for CLIs that know Claude Code's hooks; absent parts are absent keys. */
export interface SettingsDocument {
  /** Stands in the document because a repository's own settings could otherwise silence the hooks. */
  readonly disableAllHooks: false;
  readonly hooks: Readonly<Record<string, ReadonlyArray<{ readonly hooks: readonly HookCommand[] }>>>;
}

/** Tool events; a failing command fires the second one only. */
const TAP_EVENTS = ['PostToolUse', 'PostToolUseFailure'] as const;
const TAP_TIMEOUT_S = 10;

/**
 * The one settings document of a turn, made of all its parts by this one function; undefined where there is no part.
 * Throws `hook_path_unsafe` for a path that a shell would read as more than a path.
 */
export function composeSettings(parts: HookParts): SettingsDocument | undefined {
  const { gate, tap } = parts;
  if (gate === undefined && tap === undefined) return undefined;
  return {
    disableAllHooks: false,
    hooks: {
      ...(gate === undefined ? {} : { Stop: [{ hooks: [gateCommand(gate)] }] }),
      ...(tap === undefined ? {} : Object.fromEntries(TAP_EVENTS.map((event) => [event, [{ hooks: [tapCommand(tap)] }]]))),
    },
  };
}

/**
 * Any failure of the script itself becomes a refusal. The word on standard output keeps one CLI from overruling it, the one on standard
 * error keeps another from letting go.
 */
function gateCommand(gate: NonNullable<HookParts['gate']>): HookCommand {
  const call = ['/bin/sh', gate.script, gate.config, gate.state].map(safePath).join(' ');
  return {
    type: 'command',
    timeout: HOOK_TIMEOUT_S,
    command: `${call} || { echo gate; echo 'The gate did not let this stop pass.' >&2; exit 2; }`,
  };
}

function tapCommand(tap: NonNullable<HookParts['tap']>): HookCommand {
  return { type: 'command', timeout: TAP_TIMEOUT_S, command: `/bin/sh ${safePath(tap.script)} ${safePath(tap.file)} || exit 0` };
}

function safePath(path: string): string {
  if (!/^\/[A-Za-z0-9/._-]+$/.test(path))
    throw new StopGateError('hook_path_unsafe', `the hook path ${JSON.stringify(path.slice(0, 200))} is not plain and absolute`);
  return path;
}

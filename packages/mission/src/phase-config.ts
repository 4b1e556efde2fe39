/** What a phase can be about; closed. */
export const PHASE_KINDS = ['research', 'coding', 'benchmark', 'security_scan', 'preview'] as const;
/** One member of {@link PHASE_KINDS}. */
export type PhaseKind = (typeof PHASE_KINDS)[number];

/** Longest task of a phase, in characters. */
export const MAX_TASK_CHARS = 100_000;
/** Longest command of a phase, in characters. */
export const MAX_COMMAND_CHARS = 32_768;
/** Longest condition for a judge, in characters. */
export const MAX_DONE_WHEN_CHARS = 10_000;
/** Most iterations of a phase. */
export const MAX_ITERATIONS = 10;

/** The settings of a phase that something reads. Blank texts are left out. */
export interface PhaseConfig {
  readonly task: string;
  readonly setup?: string;
  readonly doneWhenCheck?: string;
  readonly allowEmpty?: boolean;
}

/** The code that reads a setting: a source file from the root of the repository, and the expression in it. */
export interface Reader {
  readonly file: string;
  readonly reads: string;
}

/** What values a setting takes. */
export type ValueRule =
  | { readonly type: 'text'; readonly maxChars: number; readonly required: boolean }
  | { readonly type: 'flag' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number };

/** One known setting of a phase; without readers it is inert: planned, stored by nobody, and refused. */
export interface PhaseConfigKey {
  readonly key: string;
  readonly summary: string;
  readonly value: ValueRule;
  readonly readers: readonly Reader[];
}

const SPEC = 'apps/server/src/driver/build-spec.ts';
const FACTS = 'apps/server/src/driver/mission-facts.ts';
const command: ValueRule = { type: 'text', maxChars: MAX_COMMAND_CHARS, required: false };

/** Every known setting of a phase. A setting that is added here without a reader in the sources is inert. */
const KEYS: readonly PhaseConfigKey[] = [
  {
    key: 'task',
    summary: "Injected into the turn's prompt.",
    value: { type: 'text', maxChars: MAX_TASK_CHARS, required: true },
    readers: [{ file: SPEC, reads: 'task: request.task' }],
  },
  {
    key: 'setup',
    summary: 'Command run before the agent and before each check.',
    value: command,
    readers: [{ file: SPEC, reads: 'command: request.setup' }],
  },
  {
    key: 'doneWhenCheck',
    summary: 'Shell command that must exit 0 before a turn may succeed.',
    value: command,
    readers: [
      { file: FACTS, reads: 'doneWhenCheck: request.doneWhenCheck' },
      { file: 'packages/stop-gate/src/plan-gate.ts', reads: 'phase.doneWhenCheck?.trim()' },
    ],
  },
  {
    key: 'allowEmpty',
    summary: 'Lets a phase that changed nothing complete.',
    value: { type: 'flag' },
    readers: [
      { file: FACTS, reads: 'allowEmpty: request.allowEmpty' },
      { file: 'packages/stop-gate/src/plan-gate.ts', reads: 'phase.allowEmpty !== true' },
    ],
  },
  {
    key: 'doneWhen',
    summary: 'Condition that a model judges at the end of the phase.',
    value: { type: 'text', maxChars: MAX_DONE_WHEN_CHARS, required: false },
    readers: [],
  },
  {
    key: 'maxIterations',
    summary: 'Passes over the phase before it fails.',
    value: { type: 'integer', min: 1, max: MAX_ITERATIONS },
    readers: [],
  },
  {
    key: 'commitPolicy',
    summary: 'Selects what the delivery requires of a result.',
    value: { type: 'text', maxChars: 64, required: false },
    readers: [],
  },
];

/** All known settings of a phase, in a fixed order. */
export function phaseConfigKeys(): readonly PhaseConfigKey[] {
  return KEYS;
}

/** A setting by its name: read by something, known and read by nothing (`inert`), or not known at all. Names are matched exactly. */
export function lookUpPhaseKey(
  name: string,
): { readonly status: 'live' | 'inert'; readonly entry: PhaseConfigKey } | { readonly status: 'unknown' } {
  const entry = KEYS.find((known) => known.key === name);
  if (entry === undefined) return { status: 'unknown' };
  return { status: entry.readers.length === 0 ? 'inert' : 'live', entry };
}

/** The names of the settings that something reads, in order. */
export function livePhaseKeys(): readonly string[] {
  return KEYS.filter((entry) => entry.readers.length > 0).map((entry) => entry.key);
}

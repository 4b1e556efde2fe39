import { livePhaseKeys, lookUpPhaseKey, type PhaseConfig, type PhaseConfigKey, type PhaseKind, phaseConfigKeys } from './phase-config.ts';
import { isObject, type PlanReason, type PlanRefusal, quote } from './plan-reasons.ts';

/** One phase of a plan; its place in the list is its position. */
export interface PlannedPhase extends PhaseConfig {
  readonly kind: PhaseKind;
}

type Refusals = PlanRefusal<PlanReason>[];
type Fields = Readonly<Record<string, unknown>>;

/** Most unknown keys of one phase that are named. */
const MAX_NAMED_KEYS = 10;

/** Parses the phase at position `at`: the phase, or everything that is wrong with it in the closed order. Nothing is repaired. */
export function parsePhase(value: unknown, at: number, kinds: readonly PhaseKind[]): PlannedPhase | readonly PlanRefusal<PlanReason>[] {
  if (!isObject(value)) return [{ reason: 'plan_malformed', message: `phase ${at} is no object` }];
  const kind = kinds.find((known) => known === value.kind);
  const refusals: Refusals = [];
  if (kind === undefined) {
    const named = typeof value.kind === 'string' ? quote(value.kind) : 'that is no text';
    refusals.push({ reason: 'plan_unknown_kind', message: `phase ${at} has the kind ${named}; known: ${kinds.join(', ')}` });
  }
  refusals.push(...refuseTask(value, at), ...refuseKeys(value, at), ...refuseValues(value, at));
  if (kind === undefined || refusals.length > 0) return refusals;
  return { kind, ...configOf(value) };
}

function refuseTask({ task }: Fields, at: number): Refusals {
  if (typeof task === 'string' && task.trim() !== '') return [];
  if (task !== undefined && task !== null && typeof task !== 'string') return [];
  return [{ reason: 'plan_blank_task', message: `phase ${at} has no task` }];
}

function refuseKeys(fields: Fields, at: number): Refusals {
  const live = livePhaseKeys().join(', ');
  const keys = Object.keys(fields).filter((key) => key !== 'kind');
  const inert = keys.filter((key) => lookUpPhaseKey(key).status === 'inert');
  const unknown = keys.filter((key) => lookUpPhaseKey(key).status === 'unknown').slice(0, MAX_NAMED_KEYS);
  return [
    ...inert.map((key) => ({ reason: 'plan_inert_key' as const, message: `nothing reads ${key} of phase ${at} yet; read: ${live}` })),
    ...unknown.map((key) => ({
      reason: 'plan_unknown_key' as const,
      message: `phase ${at} has the unknown key ${quote(key)}; read: ${live}`,
    })),
  ];
}

function refuseValues(fields: Fields, at: number): Refusals {
  return phaseConfigKeys().flatMap((entry): Refusals => {
    const value = fields[entry.key];
    const wanted = entry.readers.length === 0 || value === undefined || value === null ? undefined : unmetRule(entry, value);
    return wanted === undefined ? [] : [{ reason: 'plan_bad_value', message: `${entry.key} of phase ${at} is not ${wanted}` }];
  });
}

/** What the value should have been; undefined where it is that. */
function unmetRule({ value: rule }: PhaseConfigKey, value: unknown): string | undefined {
  switch (rule.type) {
    case 'text':
      return typeof value === 'string' && value.length <= rule.maxChars && !value.includes('\0')
        ? undefined
        : `a text of at most ${rule.maxChars} characters without NUL`;
    case 'flag':
      return typeof value === 'boolean' ? undefined : 'true or false';
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value) && value >= rule.min && value <= rule.max
        ? undefined
        : `a whole number from ${rule.min} to ${rule.max}`;
  }
}

/** Blank optional texts are left out; a flag is kept whenever it was given, false included. */
function configOf(fields: Fields): PhaseConfig {
  const { allowEmpty } = fields;
  return {
    task: textOf(fields.task) ?? '',
    ...named('setup', textOf(fields.setup)),
    ...named('doneWhenCheck', textOf(fields.doneWhenCheck)),
    ...(typeof allowEmpty === 'boolean' ? { allowEmpty } : {}),
  };
}

function textOf(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}

function named<Key extends string>(key: Key, text: string | undefined): Readonly<Partial<Record<Key, string>>> {
  const entry: Partial<Record<Key, string>> = {};
  if (text !== undefined) entry[key] = text;
  return entry;
}

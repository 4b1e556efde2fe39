/** The rules that can refuse a start; closed. */
export const SPAWN_RULES = [
  'environment_missing',
  'environment_not_an_object',
  'environment_empty_name',
  'environment_bad_name',
  'environment_not_a_string',
  'environment_nul',
  'environment_secret_name',
  'environment_secret_value',
  'environment_reserved_name',
  'environment_too_many',
  'environment_too_large',
  'command_missing',
  'command_not_a_list',
  'command_not_a_string',
  'command_nul',
  'command_too_many',
  'command_too_large',
  'cwd_missing',
  'cwd_not_absolute',
  'cwd_outside_work_folder',
  'cwd_in_data_folder',
  'cwd_denied_part',
  'work_folder_missing',
  'data_folder_missing',
  'prompt_missing',
  'schema_missing',
  'prompt_and_schema_apart',
  'prompt_outside_folder',
] as const;
/** One member of {@link SPAWN_RULES}. */
export type SpawnRule = (typeof SPAWN_RULES)[number];

/** Code that every refusal carries. */
export const BOUNDS_REJECTED = 'bounds_rejected';

/** Nothing may be started. It names the rule and the variable, argument index or path, never a value. */
export interface SpawnRefusal {
  readonly verdict: 'refused';
  readonly reason: typeof BOUNDS_REJECTED;
  readonly rule: SpawnRule;
  /** The variable's name, the argument's index or the path. */
  readonly subject?: string;
  readonly message: string;
}

export function refuseSpawn(rule: SpawnRule, message: string, subject?: string): SpawnRefusal {
  return { verdict: 'refused', reason: BOUNDS_REJECTED, rule, message, ...(subject === undefined ? {} : { subject }) };
}

/** A subject as it may stand in a message: no control characters, at most 80 characters. */
export function quoteSubject(text: string): string {
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?');
  return clean.length <= 80 ? `"${clean}"` : `"${clean.slice(0, 77)}..."`;
}

/** Bytes of UTF-8. */
export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

import { MAX_ENVIRONMENT_BYTES, MAX_ENVIRONMENT_ENTRIES, MAX_STRING_BYTES } from './limits.ts';
import { byteLength, quoteSubject, refuseSpawn, type SpawnRefusal } from './rules.ts';
import { looksLikeSecretName, looksLikeSecretValue } from './secret-names.ts';

/** What an environment may hold beyond ordinary names. */
export interface EnvironmentPolicy {
  /** Names that look like secrets and are allowed, because the backend's credential contract declares them; exact spelling. */
  readonly contract?: readonly string[];
  /** Prefix that only the platform may use; default {@link RESERVED_PREFIX}. */
  readonly reservedPrefix?: string;
}

/** Prefix of the variables that only the platform sets. */
export const RESERVED_PREFIX = 'FIRECREW_';

/** The environment to start with: a copy of the caller's. */
export interface AcceptedEnvironment {
  readonly verdict: 'accepted';
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Checks the environment of an exec. Absent, null and empty are fine. One entry that cannot be honoured refuses the whole start;
 * the refusal names the variable, never its value.
 */
export function checkEnvironment(entries: unknown, policy: EnvironmentPolicy = {}): AcceptedEnvironment | SpawnRefusal {
  if (entries === undefined || entries === null) return { verdict: 'accepted', environment: {} };
  if (!isPlainObject(entries)) return refuseSpawn('environment_not_an_object', 'the environment is no object of names and values');
  const pairs = Object.entries(entries);
  if (pairs.length > MAX_ENVIRONMENT_ENTRIES) {
    return refuseSpawn('environment_too_many', `the environment has ${pairs.length} entries; the limit is ${MAX_ENVIRONMENT_ENTRIES}`);
  }
  const accepted: Array<[string, string]> = [];
  let total = 0;
  for (const [name, value] of pairs) {
    const refusal = refuseEntry(name, value, policy);
    if (refusal !== undefined) return refusal;
    if (typeof value !== 'string') return refuseSpawn('environment_not_a_string', notAString(name), name);
    total += byteLength(name) + byteLength(value) + 2;
    if (total > MAX_ENVIRONMENT_BYTES) {
      return refuseSpawn('environment_too_large', `the environment exceeds ${MAX_ENVIRONMENT_BYTES} bytes at ${quoteSubject(name)}`, name);
    }
    accepted.push([name, value]);
  }
  return { verdict: 'accepted', environment: Object.fromEntries(accepted) };
}

function refuseEntry(name: string, value: unknown, policy: EnvironmentPolicy): SpawnRefusal | undefined {
  const shown = quoteSubject(name);
  if (name === '') return refuseSpawn('environment_empty_name', 'a variable has an empty name', '');
  if (/[=\0]/.test(name)) return refuseSpawn('environment_bad_name', `the variable ${shown} has "=" or NUL in its name`, name);
  if (typeof value !== 'string') return refuseSpawn('environment_not_a_string', notAString(name), name);
  if (value.includes('\0')) return refuseSpawn('environment_nul', `the variable ${shown} has a NUL in its value`, name);
  if (byteLength(name) + byteLength(value) + 1 > MAX_STRING_BYTES) {
    return refuseSpawn('environment_too_large', `the variable ${shown} is longer than ${MAX_STRING_BYTES} bytes with its name`, name);
  }
  if (name.toUpperCase().startsWith(policy.reservedPrefix ?? RESERVED_PREFIX)) {
    return refuseSpawn('environment_reserved_name', `the variable ${shown} uses a prefix that only the platform sets`, name);
  }
  if (policy.contract?.includes(name) === true) return undefined;
  if (looksLikeSecretName(name)) {
    return refuseSpawn(
      'environment_secret_name',
      `the variable ${shown} looks like a secret and is not in the backend's credential contract`,
      name,
    );
  }
  if (looksLikeSecretValue(value)) {
    return refuseSpawn('environment_secret_value', `the value of ${shown} is a URL with a user name or password in it`, name);
  }
  return undefined;
}

function notAString(name: string): string {
  return `the value of ${quoteSubject(name)} is not a string`;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

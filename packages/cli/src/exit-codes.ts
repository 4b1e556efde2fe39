import { CodedError, codeOf } from '@firecrew/base';
import { FirecrewApiError } from '@firecrew/sdk';

/** What the command ends with. */
export const EXIT = { completed: 0, failed: 1, usage: 2, cancelled: 3, notPlaced: 4, detached: 130 } as const;

/** A command that was called wrongly: nothing was done. Ends with {@link EXIT.usage}. */
export class UsageError extends CodedError {}

const VERSION_CODES: readonly string[] = [
  'generation_mismatch',
  'home_too_new',
  'settings_invalid',
  'database_not_named',
  'policy_invalid',
  'policy_unreadable',
  'registry_unresolvable',
  'backend_unknown',
  'backend_unreadable',
  'backend_invalid',
  'backend_duplicate',
];

/** The exit code for an error: 2 for a wrong call, wrong settings or another version, else 1. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError || VERSION_CODES.includes(codeOf(error) ?? '')) return EXIT.usage;
  if (error instanceof FirecrewApiError && error.status === 400) return EXIT.usage;
  return EXIT.failed;
}

import { cleanLine } from './clean-text.ts';

/** Reasons that say more in other words. */
const WORDS: Readonly<Record<string, string>> = { empty_list: 'no host is allowed' };

/** A machine's reason for people. */
export function describeReason(reason: string): string {
  return WORDS[reason] ?? cleanLine(reason).replaceAll('_', ' ');
}

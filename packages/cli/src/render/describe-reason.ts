import { cleanLine } from './clean-text.ts';

/** Reasons that say more in other words. */
const WORDS: Readonly<Record<string, string>> = {
  empty_list: 'no host is allowed',
  host_connections_spent: 'its budget of connections is used up',
  host_bytes_spent: 'its budget of bytes is used up',
  turn_connections_spent: "the turn's budget of connections is used up",
  turn_bytes_spent: "the turn's budget of bytes is used up",
};

/** A machine's reason for people. */
export function describeReason(reason: string): string {
  return WORDS[reason] ?? cleanLine(reason).replaceAll('_', ' ');
}

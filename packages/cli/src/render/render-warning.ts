import type { PolicyWarning } from '@firecrew/protocol';
import { cleanLine } from './clean-text.ts';

/** Something that the policy leaves out of what a mission asks for, as one line: which host, what stands in the way, and what to do. */
export function renderWarning({ message, action }: PolicyWarning): string {
  return cleanLine(`policy: ${message}. ${action}`, 2_000);
}

import type { VmExit } from '@firecrew/vmm';

/** Characters of a reason that go into events and messages; the guest's own console may be in it. */
export const MAX_EXIT_CHARS = 400;

/** How a VM ended, in words for a person: the driver's reason where there is one, else what the system says of the process. */
export function describeExit({ detail, signal, code }: VmExit): string {
  if (detail === undefined) return signal ?? `exit ${code ?? 'unknown'}`;
  return detail.replace(/[^\x20-\x7e]+/g, ' ').slice(0, MAX_EXIT_CHARS);
}

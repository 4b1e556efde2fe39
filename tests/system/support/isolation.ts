import { ProcessDriver } from '@firecrew/vmm';

/** Why what needs isolated processes does not run here, as a part of a test's name; empty where it runs. */
export async function withoutIsolation(): Promise<string> {
  const { isolation } = await new ProcessDriver({ bubblewrap: 'auto' }).probe();
  return isolation === 'none' ? ' (not run: bubblewrap is missing or may not be used)' : '';
}

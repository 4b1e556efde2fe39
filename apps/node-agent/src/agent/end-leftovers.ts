import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { TurnSpec } from '@firecrew/protocol';
import { killMarked, removeNotedGroups } from '@firecrew/vmm';
import { attemptMarker } from '../shim/attempt-context.ts';

/** Ends what an attempt whose shim is gone left on its host: its processes, and the groups of its VMs. Names what is still there. */
export async function endLeftovers(spec: Pick<TurnSpec, 'turnId' | 'attempt' | 'epoch'>, turnFolder: string): Promise<string[]> {
  const marker = attemptMarker(spec);
  const { left } = await killMarked(marker);
  const groups: string[] = [];
  // Each VM has a folder of its own there; what is none holds no list of groups.
  for (const name of await namesIn(turnFolder)) groups.push(...(await removeNotedGroups(join(turnFolder, name), marker)));
  return [...left.map((pid) => `process ${pid}`), ...groups];
}

/** The names in a folder; none when it is gone. */
function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
}

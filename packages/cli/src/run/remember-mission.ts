import { join } from 'node:path';
import * as z from 'zod';
import type { Home } from '../home/open-home.ts';
import { readState, replaceFile } from '../home/write-file.ts';

const memorySchema = z.object({ repository: z.string() });

/** Remembers which repository of this machine a mission was started from, so that `fetch` finds it. */
export function rememberMission(home: Home, missionId: string, repository: string): void {
  replaceFile(join(home.paths.client, `${missionId}.json`), `${JSON.stringify({ repository })}\n`);
}

/** The repository of a mission that was started here, or undefined. */
export function recallRepository(home: Home, missionId: string): string | undefined {
  return readState(join(home.paths.client, `${missionId}.json`), memorySchema)?.repository;
}

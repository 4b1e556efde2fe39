import { isAlive } from '@firecrew/base';
import { negotiateGeneration, type ServerFile, serverFileSchema } from '@firecrew/protocol';
import { FirecrewClient } from '@firecrew/sdk';
import { Agent } from 'undici';
import type { Home } from '../home/open-home.ts';
import { readForeignState } from '../home/write-file.ts';

/** How long a server may take to say whether it is ready, in ms. */
export const READY_TIMEOUT_MS = 3_000;

/** What was found: a server of this home that is ready, or why there is none. */
export type FoundServer =
  | { readonly ready: true; readonly url: string; readonly file: ServerFile }
  | { readonly ready: false; readonly reason: 'no_file' | 'dead' | 'unreachable' | 'other_home' | 'not_ready'; readonly file?: ServerFile };

/** Reads `server.json`: it is believed only if its process lives and `/readyz` answers with this home's id. */
export async function findServer(home: Home): Promise<FoundServer> {
  const file = readForeignState(home.paths.serverFile, serverFileSchema);
  if (file === undefined) return { ready: false, reason: 'no_file' };
  if (!isAlive(file)) return { ready: false, reason: 'dead', file };
  const dispatcher = new Agent({ headersTimeout: READY_TIMEOUT_MS, bodyTimeout: READY_TIMEOUT_MS, connect: { timeout: READY_TIMEOUT_MS } });
  try {
    // No token: until it has named the home, this may be anybody's server.
    const answer = await withTimeout(new FirecrewClient({ url: file.url, token: 'none', dispatcher }).ready());
    if (answer.homeId !== home.homeId) return { ready: false, reason: 'other_home', file };
    return answer.ok ? { ready: true, url: file.url, file } : { ready: false, reason: 'not_ready', file };
  } catch {
    return { ready: false, reason: 'unreachable', file };
  } finally {
    await dispatcher.destroy();
  }
}

async function withTimeout<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), READY_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Why this client and that server do not understand each other, or undefined. */
export function generationFault(file: ServerFile): string | undefined {
  const verdict = negotiateGeneration('httpApi', file.generation);
  return verdict.ok ? undefined : verdict.message;
}

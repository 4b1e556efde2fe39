import type { LogChunk, MissionEvent } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { learn, newFacts, type RunFacts } from './run-facts.ts';

/** How long the last output may take to arrive after the mission has ended, in ms. */
export const LAST_OUTPUT_MS = 10_000;

/** Who is told what happens. */
export interface RunListener {
  onEvent(event: MissionEvent): void;
  /** Left out where nobody wants the output. */
  onLog?: ((chunk: LogChunk) => void) | undefined;
  onReconnect?: (() => void) | undefined;
}

/** Follows a mission to its end through restarts of the server; `signal` leaves it as it is. */
export async function followRun(client: FirecrewClient, missionId: string, listener: RunListener, signal: AbortSignal): Promise<RunFacts> {
  const logsEnd = new AbortController();
  const leave = (): void => logsEnd.abort();
  signal.addEventListener('abort', leave, { once: true });
  const logs = followLogs(client, missionId, listener, logsEnd.signal);
  let facts = newFacts(missionId);
  let told = false;
  const onReconnect = (): void => {
    // A restart is short: only a longer one is worth a line.
    if (told) listener.onReconnect?.();
    told = true;
  };
  try {
    for await (const event of client.events(missionId, { signal, onReconnect })) {
      told = false;
      facts = learn(facts, event);
      listener.onEvent(event);
    }
    await Promise.race([logs, waitFor(LAST_OUTPUT_MS, logsEnd.signal)]);
    return facts;
  } finally {
    logsEnd.abort();
    signal.removeEventListener('abort', leave);
    await logs;
  }
}

/** Output is display: a failure to show it never fails a run. */
async function followLogs(client: FirecrewClient, missionId: string, listener: RunListener, signal: AbortSignal): Promise<void> {
  const { onLog } = listener;
  if (onLog === undefined) return;
  try {
    for await (const chunk of client.logs(missionId, { signal })) onLog(chunk);
  } catch {
    return;
  }
}

async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError } from '@firecrew/base';
import type { DataClient } from './data-client.ts';

/** Time over which a server that cannot give an input is asked again, and the pauses in between. */
export const INPUT_RETRY_MS = 600_000;
export const INPUT_PAUSE_MIN_MS = 250;
export const INPUT_PAUSE_MAX_MS = 10_000;

interface Input {
  readonly digest: string;
  readonly bytes: number;
}

/**
 * Fetches the inputs of an attempt into `folder`, each as a file of its digest's name. A server or database that is away for a while
 * ends no attempt: it is asked again until `signal` fires or `INPUT_RETRY_MS` are over. Throws the codes of `DataClient.download`.
 */
export async function fetchInputs(
  data: Pick<DataClient, 'download'>,
  inputs: readonly Input[],
  folder: string,
  signal: AbortSignal,
  clock: () => number,
): Promise<void> {
  const end = clock() + INPUT_RETRY_MS;
  for (const { digest, bytes } of inputs) {
    for (let pauseMs = INPUT_PAUSE_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, INPUT_PAUSE_MAX_MS)) {
      signal.throwIfAborted();
      try {
        await data.download(digest, bytes, join(folder, digest));
        break;
      } catch (error) {
        // A coded refusal is an answer; all else is a connection or a server that failed.
        if (error instanceof CodedError || clock() > end) throw error;
        await delay(pauseMs, undefined, { signal });
      }
    }
  }
}

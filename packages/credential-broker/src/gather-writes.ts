import type { ServerResponse } from 'node:http';

/** What is written within one turn of the event loop goes out at once: a short answer is one write and not three. */
export function gatherWrites(response: ServerResponse): void {
  // An answer that waits for the one before on its connection has no socket yet, and counts corks in another way.
  if (response.writableCorked > 0 || response.socket === null) return;
  response.cork();
  // The end of an answer lets go of all that was held.
  setImmediate(() => {
    if (!response.writableEnded) response.uncork();
  });
}

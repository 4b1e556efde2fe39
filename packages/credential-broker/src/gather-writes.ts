import type { ServerResponse } from 'node:http';

/** What is written within one turn of the event loop goes out at once: a short answer is one write and not three. */
export function gatherWrites(response: ServerResponse): void {
  if (response.writableCorked > 0) return;
  response.cork();
  // The end of an answer lets go of all that was held.
  setImmediate(() => {
    if (!response.writableEnded) response.uncork();
  });
}

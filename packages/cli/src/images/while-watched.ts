import { EXIT } from '../exit-codes.ts';
import type { Output } from '../render/output.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Runs long work that Ctrl-C or a request to end gives up: its tools are ended, and nothing half-made is kept. Gives the exit code of the command. */
export async function whileWatched(out: Output, work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const abort = new AbortController();
  const onSignal = (): void => {
    out.note('giving up; once more leaves at once');
    // The second one is the system's to carry out.
    unwatch();
    abort.abort(new Error('given up'));
  };
  const unwatch = (): void => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  try {
    return await work(abort.signal);
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    out.note('nothing was kept');
    return EXIT.cancelled;
  } finally {
    unwatch();
  }
}

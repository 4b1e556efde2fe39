import type { Home } from '../home/open-home.ts';
import { ensureRunning, isSupervised, touchHome } from '../server/ensure-running.ts';
import { type CommandContext, settingsOf } from './context.ts';

const LOOK_EVERY_MS = 2_000;

/** While a command waits: the home stays in use, and a supervisor that is gone is started anew; it adopts what lives. */
export function watchServices(context: CommandContext, home: Home): { stop(): Promise<void> } {
  const gone = new AbortController();
  const settings = settingsOf(context, home);
  const watching = (async () => {
    while (!gone.signal.aborted) {
      await pause(LOOK_EVERY_MS, gone.signal);
      if (gone.signal.aborted) return;
      touchHome(home, context.env);
      // A failure shows in the stream that the command follows.
      if (await isSupervised(home).catch(() => true)) continue;
      await ensureRunning(home, { settings, env: context.env, keep: false, signal: gone.signal }).catch(() => undefined);
    }
  })();
  return {
    stop: async () => {
      gone.abort();
      await watching;
    },
  };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
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

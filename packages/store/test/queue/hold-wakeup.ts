import { parseId } from '@firecrew/base';
import { startWakeups } from '../../src/queue/wakeups.ts';

// A server that takes the wake-up of one mission, says so, and never ends it.
const [url, id] = process.argv.slice(2);
const mission = parseId('mission', id ?? '');
if (url === undefined || mission === undefined) throw new Error('usage: hold-wakeup URL MISSION');
const wakeups = await startWakeups({
  connection: { connectionString: url },
  onWakeup: () =>
    new Promise(() => {
      process.stdout.write('held\n');
    }),
});
await wakeups.wake(mission);

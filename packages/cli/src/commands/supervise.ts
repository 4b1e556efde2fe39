import { codeOf, identifyProcess, messageOf } from '@firecrew/base';
import type { Home } from '../home/open-home.ts';
import { readStarted, type StartedSettings } from '../settings/read-settings.ts';
import { chooseDatabase } from '../supervisor/choose-database.ts';
import { locateApps } from '../supervisor/locate-apps.ts';
import { askHolder, lockName, lockTaken, takeLock } from '../supervisor/start-lock.ts';
import { type SuperviseLog, Supervisor } from '../supervisor/supervise.ts';
import { type CommandContext, homeOf, settingsOf } from './context.ts';

/** `firecrew supervise`: keeps the services of one home running. Started by other commands; ends at once when another one is there. */
export async function superviseCommand(context: CommandContext): Promise<number> {
  const home = homeOf(context);
  const own = identifyProcess(process.pid);
  if (own === undefined) return 1;
  const name = lockName(home.paths.root, process.getuid?.() ?? 0);
  const lock = await takeLock(name, { homeId: home.homeId, ...own });
  const log = lineLog(context);
  if (lock === undefined) {
    const answer = await askHolder(name, home.homeId, home.paths.root);
    if (answer.kind === 'unknown') throw lockTaken(home.paths.root);
    log.info({}, 'another supervisor holds this home');
    return 0;
  }
  try {
    const started = readStarted(home.paths) ?? (await settingsOfCall(context, home, log));
    const supervisor = new Supervisor({ home, ...started, apps: locateApps(), log });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => supervisor.stop());
    process.on('SIGHUP', () => supervisor.retryNow());
    log.info({ home: home.paths.root, pid: process.pid, version: context.version }, 'supervisor starts');
    await supervisor.run();
    log.info({}, 'supervisor ends');
    return 0;
  } catch (error) {
    log.warn({ err: messageOf(error), code: codeOf(error), stack: error instanceof Error ? error.stack : undefined }, 'supervisor failed');
    return 1;
  } finally {
    await lock.release();
  }
}

/** One JSON object a line, like the logs of the other parts. */
function lineLog(context: CommandContext): SuperviseLog {
  const write = (level: string, fields: Readonly<Record<string, unknown>>, msg: string): void => {
    const plain = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? value.message : value]));
    context.out.note(JSON.stringify({ level, time: new Date().toISOString(), role: 'supervisor', ...plain, msg }));
  };
  return { info: (fields, msg) => write('info', fields, msg), warn: (fields, msg) => write('warn', fields, msg) };
}

/** What a supervisor starts with that no other command has started. */
async function settingsOfCall(context: CommandContext, home: Home, log: SuperviseLog): Promise<StartedSettings> {
  const settings = settingsOf(context, home);
  const onNote = (text: string): void => log.warn({}, text);
  return { settings, database: await chooseDatabase(home, { settings, env: context.env, onNote }) };
}

import { CodedError, messageOf } from '@firecrew/base';
import * as z from 'zod';
import type { HomePaths } from '../home/home-paths.ts';
import { readState, readText, replaceFile } from '../home/write-file.ts';
import { mergeSettings, type Settings, settingsOfEnvironment, settingsSchema } from './settings.ts';

/** The settings of this call: `config.json`, then the environment, then flags. Throws `settings_invalid`. */
export function readSettings(paths: HomePaths, env: Readonly<Record<string, string | undefined>>, flags: unknown): Settings {
  return mergeSettings([
    { name: paths.config, value: readConfigFile(paths.config) },
    { name: 'the environment (FIRECREW_*)', value: settingsOfEnvironment(env) },
    { name: 'the command line', value: flags },
  ]);
}

const databaseChoiceSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('own') }),
  z.strictObject({ kind: z.literal('url'), url: z.string() }),
]);
/** The database of the services: the home's own PostgreSQL, or that of a URL, which holds a password. */
export type DatabaseChoice = z.infer<typeof databaseChoiceSchema>;

const startedSchema = z.strictObject({ settings: settingsSchema, database: databaseChoiceSchema });
/** With what the services of a home are started: the settings as they were given, and the database that was chosen by them. */
export type StartedSettings = z.infer<typeof startedSchema>;

/** With what the services of a home were last started. */
export function readStarted(paths: HomePaths): StartedSettings | undefined {
  return readState(paths.settings, startedSchema);
}

/** Leaves for the supervisor with what it is to start the services. */
export function writeStarted(paths: HomePaths, started: StartedSettings): void {
  replaceFile(paths.settings, `${JSON.stringify(started)}\n`);
}

function readConfigFile(file: string): unknown {
  const text = readText(file);
  if (text === undefined) return {};
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CodedError('settings_invalid', `${file} is not JSON: ${messageOf(cause)}`, {
      id: file,
      action: 'Correct it; docs/cli.md lists every key.',
      cause,
    });
  }
}

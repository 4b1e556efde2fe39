import { CodedError, messageOf } from '@firecrew/base';
import type { HomePaths } from '../home/home-paths.ts';
import { readState, readText } from '../home/write-file.ts';
import { mergeSettings, type Settings, settingsOfEnvironment, settingsSchema } from './settings.ts';

/** The settings of this call: `config.json`, then the environment, then flags. Throws `settings_invalid`. */
export function readSettings(paths: HomePaths, env: Readonly<Record<string, string | undefined>>, flags: unknown): Settings {
  return mergeSettings([
    { name: paths.config, value: readConfigFile(paths.config) },
    { name: 'the environment (FIRECREW_*)', value: settingsOfEnvironment(env) },
    { name: 'the command line', value: flags },
  ]);
}

/** The settings with which the services of a home were last started. */
export function readStartedSettings(paths: HomePaths): Settings | undefined {
  return readState(paths.settings, settingsSchema);
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

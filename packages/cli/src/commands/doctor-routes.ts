import { accessSync, constants } from 'node:fs';
import { messageOf } from '@firecrew/base';
import { openExistingHome } from '../home/open-home.ts';
import { readSettings } from '../settings/read-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { type CommandContext, homePathOf } from './context.ts';
import type { Finding } from './doctor.ts';

/** Which model routes the settings of the home name, and whether their files are there. */
export function probeModelRoutes(context: CommandContext): Finding {
  const root = homePathOf(context);
  const check = 'model routes';
  try {
    const home = openExistingHome(root);
    return judgeRoutes((home && readSettings(home.paths, context.env, {}).modelRoutes) ?? {}, `$EDITOR ${root}/config.json`, missing);
  } catch (error) {
    // The check of the settings says what is wrong with them, and how to mend it.
    return { check, state: 'warning', detail: messageOf(error), fix: null };
  }
}

/** What is told of routes: backend and format alone, and the first file of them that `faultOf` finds a fault with. */
export function judgeRoutes(
  routes: NonNullable<Settings['modelRoutes']>,
  edit: string,
  faultOf: (file: string) => string | undefined,
): Finding {
  const check = 'model routes';
  const named = Object.entries(routes);
  for (const [backend, { credential, caFile, priceFile }] of named) {
    const files = [credential !== null && 'file' in credential ? credential.file : undefined, caFile, priceFile];
    for (const file of files) {
      const fault = file === undefined ? undefined : faultOf(file);
      if (fault !== undefined) return { check, state: 'warning', detail: `that of ${backend} names ${file}: ${fault}`, fix: edit };
    }
  }
  const detail = named.map(([backend, { format }]) => `${backend} (${format})`).join(', ');
  return {
    check,
    state: 'ok',
    detail: detail === '' ? 'none: `run --needs-model-route` waits for a node that has one' : detail,
    fix: null,
  };
}

/** What may be read is for the account of the credential broker to say, which may be another one. */
function missing(file: string): string | undefined {
  try {
    accessSync(file, constants.F_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'it is not there' : undefined;
  }
}

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';

/** Entry points of the programs that a supervisor starts, each in one file. */
export interface AppEntries {
  readonly command: string;
  readonly server: string;
  readonly migrations: string;
  readonly nodeAgent: string;
}

/** Where the programs lie: beside this file where it is part of the bundle, else in the bundle of the checkout. */
export function locateApps(): AppEntries {
  const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const folder = existsSync(at('./apps/server.mjs')) ? '.' : '../../bundle';
  const entry = (name: string): string => at(`${folder}/${name}`);
  return {
    command: entry('command.mjs'),
    server: entry('apps/server.mjs'),
    migrations: entry('apps/migrations'),
    nodeAgent: entry('apps/node-agent.mjs'),
  };
}

/** Throws `app_missing` for an entry that is not there. */
export function demandEntry(file: string): string {
  if (existsSync(file)) return file;
  throw new CodedError('app_missing', `${file} is not there`, { id: file, action: 'Build the checkout: npm run build' });
}

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';

/** Entry points of the programs that a supervisor starts. */
export interface AppEntries {
  readonly command: string;
  readonly server: string;
  /** The server in one file with its migrations, for an account that cannot read where the others lie. */
  readonly serverBundle: string;
  readonly migrations: string;
  readonly nodeAgent: string;
}

/** Where the programs lie: beside the bundle of the published package, or in the `dist` and `bundle` folders of a checkout. */
export function locateApps(): AppEntries {
  const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  if (existsSync(at('./apps/server.mjs'))) {
    const server = at('./apps/server.mjs');
    const migrations = at('./apps/migrations');
    return { command: at('./command.mjs'), server, serverBundle: server, migrations, nodeAgent: at('./apps/node-agent.mjs') };
  }
  return {
    command: at('../main.js'),
    server: at('../../../../apps/server/dist/main.js'),
    serverBundle: at('../../../../apps/server/bundle/server.mjs'),
    migrations: at('../../../../apps/server/bundle/migrations'),
    nodeAgent: at('../../../../apps/node-agent/dist/agent/main.js'),
  };
}

/** Throws `app_missing` for an entry that is not there. */
export function demandEntry(file: string): string {
  if (existsSync(file)) return file;
  throw new CodedError('app_missing', `${file} is not there`, { id: file, action: 'Build the checkout: npm run build' });
}

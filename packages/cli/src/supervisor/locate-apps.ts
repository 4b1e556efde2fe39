import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';

/** Entry points of the programs that a supervisor starts. */
export interface AppEntries {
  readonly command: string;
  readonly server: string;
  readonly nodeAgent: string;
}

/** Where the apps lie, relative to this package's `dist`. */
export function locateApps(): AppEntries {
  const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  return {
    command: at('../main.js'),
    server: at('../../../../apps/server/dist/main.js'),
    nodeAgent: at('../../../../apps/node-agent/dist/agent/main.js'),
  };
}

/** Throws `app_missing` for an entry that is not there. */
export function demandEntry(file: string): string {
  if (existsSync(file)) return file;
  throw new CodedError('app_missing', `${file} is not there`, { id: file, action: 'Build the checkout: npm run build' });
}

import type { ImageConfig } from '../oci/documents.ts';
import { malformedImage } from '../oci/documents.ts';

/** How an image wants commands to be run. */
export interface RunFacts {
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string;
  readonly workingDirectory: string;
}

/** What an image wants that says nothing about it. */
export const PLAIN_RUN_FACTS: RunFacts = { environment: {}, user: '', workingDirectory: '/' };

/** The wishes of an image's configuration. Throws `image_malformed` for a variable without a name, or with a NUL. */
export function runFactsOf({ config }: ImageConfig): RunFacts {
  const environment = new Map<string, string>();
  for (const entry of config?.Env ?? []) {
    const equals = entry.indexOf('=');
    if (equals < 1 || entry.includes('\0')) throw malformedImage('a variable of its environment has no name');
    environment.set(entry.slice(0, equals), entry.slice(equals + 1));
  }
  const workingDirectory = config?.WorkingDir ?? '';
  if (workingDirectory !== '' && !workingDirectory.startsWith('/')) throw malformedImage('its working directory is no absolute path');
  return {
    environment: Object.fromEntries(environment),
    user: config?.User ?? '',
    workingDirectory: workingDirectory === '' ? '/' : workingDirectory,
  };
}

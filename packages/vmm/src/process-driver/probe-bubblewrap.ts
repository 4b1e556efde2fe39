import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';

/** Places where bubblewrap is looked for. */
export const BUBBLEWRAP_PLACES: readonly string[] = [
  '/usr/bin/bwrap',
  '/usr/local/bin/bwrap',
  '/bin/bwrap',
  '/run/current-system/sw/bin/bwrap',
];
/** Time for the trial run, in `ms`. */
export const PROBE_TIMEOUT_MS = 10_000;

/** Whether bubblewrap can be used here, tried out with the options that a guest is started with. */
export type BubblewrapProbe =
  | { readonly usable: true; readonly program: string; readonly disableUserns: boolean }
  | { readonly usable: false; readonly reason: string };

/** The namespaces of every guest. */
export const NAMESPACE_OPTIONS: readonly string[] = ['--unshare-user', '--unshare-all', '--die-with-parent', '--new-session'];

const TRIAL: readonly string[] = [
  ...['--tmpfs', '/', '--ro-bind', '/usr', '/usr'],
  ...['--ro-bind-try', '/lib', '/lib', '--ro-bind-try', '/lib64', '/lib64'],
  ...['--proc', '/proc', '--dev', '/dev', '--size', '1048576', '--tmpfs', '/tmp', '--uid', '1000', '--gid', '1000', '--clearenv'],
];

/** Looks for bubblewrap and starts a program that does nothing in it, once with and once without nested user namespaces forbidden. */
export async function probeBubblewrap(
  places: readonly string[] = BUBBLEWRAP_PLACES,
  owner?: { readonly uid: number; readonly gid: number },
): Promise<BubblewrapProbe> {
  const program = await firstExecutable(places);
  if (program === undefined) return { usable: false, reason: 'bubblewrap is missing' };
  const strict = await tryOut(program, [...NAMESPACE_OPTIONS, '--disable-userns', ...TRIAL], owner);
  if (strict === undefined) return { usable: true, program, disableUserns: true };
  const loose = await tryOut(program, [...NAMESPACE_OPTIONS, ...TRIAL], owner);
  if (loose === undefined) return { usable: true, program, disableUserns: false };
  return { usable: false, reason: `bubblewrap cannot start here: ${loose}` };
}

async function firstExecutable(places: readonly string[]): Promise<string | undefined> {
  for (const place of places) {
    try {
      await access(place, constants.X_OK);
      return place;
    } catch {
      // The next place may have it.
    }
  }
  return undefined;
}

function tryOut(program: string, options: readonly string[], owner: { uid: number; gid: number } | undefined): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(
      program,
      [...options, '--', '/usr/bin/true'],
      { timeout: PROBE_TIMEOUT_MS, killSignal: 'SIGKILL', env: {}, cwd: '/', ...owner },
      (error, _stdout, stderr) => resolve(error === null ? undefined : firstLine(stderr) || error.message.split('\n')[0]),
    );
  });
}

function firstLine(text: string): string {
  return (text.split('\n')[0] ?? '').slice(0, 300);
}

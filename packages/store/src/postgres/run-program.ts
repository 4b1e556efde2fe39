import { execFile } from 'node:child_process';
import { CodedError } from '@firecrew/base';
import type { DatabaseUser } from './database-user.ts';
import type { RunnableBinaries } from './install-binaries.ts';

/** How much output of `initdb` and `postgres -V` is kept. */
const OUTPUT_MAX_BYTES = 1024 * 1024;
/** How long `initdb` may take; it took 1.5 s on the slowest machine measured. */
const PROGRAM_TIMEOUT_MS = 120_000;

/** The whole environment of the server's programs: nothing of the caller's, so no `PG*` variable changes what they do. */
export function programEnvironment(binaries: RunnableBinaries): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };
  if (binaries.libraries !== undefined) env.LD_LIBRARY_PATH = binaries.libraries;
  return env;
}

/** Runs a program of the server to its end as `user` in the folder `cwd`, by which an orphaned one is found, and returns its standard output. Throws `postgres_program_failed`. */
export function runProgram(
  binaries: RunnableBinaries,
  program: 'initdb' | 'postgres',
  args: readonly string[],
  user: DatabaseUser | undefined,
  cwd = '/',
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      cwd,
      env: programEnvironment(binaries),
      maxBuffer: OUTPUT_MAX_BYTES,
      timeout: PROGRAM_TIMEOUT_MS,
      killSignal: 'SIGKILL' as const,
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
    };
    execFile(`${binaries.bin}/${program}`, [...args], options, (cause, stdout, stderr) => {
      if (cause === null) return resolve(stdout);
      const said = stderr.trim().split('\n').slice(-5).join('; ');
      const message = `${program} failed: ${said === '' ? cause.message.split('\n')[0] : said}`;
      reject(new CodedError('postgres_program_failed', message, { action: 'Run firecrew doctor.', cause }));
    });
  });
}

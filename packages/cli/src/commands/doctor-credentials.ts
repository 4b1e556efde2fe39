import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { BROKER_OWNER } from '@firecrew/credential-broker';
import type { Settings } from '../settings/settings.ts';
import { type Account, SERVER_OWNER } from '../supervisor/server-account.ts';
import type { Finding } from './doctor.ts';

/** Time for the question whether an account may read a file, in `ms`. */
const ASK_TIMEOUT_MS = 10_000;
const OTHERS_READ = 0o004;

/** Who reads a file. */
export interface Reader {
  readonly name: string;
  /** Its account where that is another one than the caller's. */
  readonly account: Account | undefined;
}

/** A file with a credential that the settings name, and who reads it. */
export interface CredentialFile {
  readonly what: string;
  readonly file: string;
  readonly readers: readonly Reader[];
}

/** What was found out about a file: null where it is not there, else its mode, and whether each reader may read it (undefined: nobody could say). */
export type FileFacts = { readonly mode: number; readonly mayRead: readonly (boolean | undefined)[] } | null;

/** The files of `settings` that hold a credential of a node, and who reads them as the services are started by root, or by a user. */
export function listCredentialFiles({ modelRoutes = {}, egressProxy }: Settings, isRoot: boolean, hasServer: boolean): CredentialFile[] {
  const broker: Reader = { name: 'credential broker', account: isRoot ? BROKER_OWNER : undefined };
  const server: Reader = { name: 'server', account: isRoot ? SERVER_OWNER : undefined };
  const ofRoutes = Object.entries(modelRoutes).flatMap(([backend, { credential }]) =>
    credential !== null && 'file' in credential
      ? [{ what: `of the model route of ${backend}`, file: credential.file, readers: [broker] }]
      : [],
  );
  const place = egressProxy?.credential ?? null;
  if (place === null || !('file' in place)) return ofRoutes;
  const hasCalls = Object.values(modelRoutes).some(({ viaProxy }) => viaProxy);
  // As root, shims and node agent may read every file; as a user, all are the caller.
  const readers = [...(hasServer ? [server] : []), ...(hasCalls ? [broker] : [])];
  return [
    ...ofRoutes,
    {
      what: 'of the egress proxy',
      file: place.file,
      readers: readers.length > 0 ? readers : [{ ...broker, name: 'node agent', account: undefined }],
    },
  ];
}

/** What is told of one file; its content is none of the doctor's. */
export function judgeCredentialFile({ what, file, readers }: CredentialFile, facts: FileFacts): Finding {
  const check = 'credentials';
  const subject = `the credential ${what} in ${file}`;
  if (facts === null) return { check, state: 'problem', detail: `${subject} is not there`, fix: `$EDITOR ${file}` };
  const { mode, mayRead } = facts;
  const shut = readers.filter((_reader, at) => mayRead[at] === false);
  if (shut.length > 0) {
    const names = shut.map(({ name, account }) => (account === undefined ? name : `${name} (uid ${account.uid})`)).join(' and ');
    const detail = `${subject} cannot be read by the ${names}; the folders above it have to let it through, too`;
    return { check, state: 'problem', detail, fix: ownFix(file, readers) };
  }
  if ((mode & OTHERS_READ) !== 0)
    return { check, state: 'warning', detail: `${subject} can be read by every account`, fix: `chmod o-r ${file}` };
  const unknown = readers.filter((_reader, at) => mayRead[at] === undefined).map(({ name }) => name);
  if (unknown.length > 0)
    return {
      check,
      state: 'warning',
      detail: `${subject}: whether the ${unknown.join(' and ')} may read it could not be found out`,
      fix: null,
    };
  return { check, state: 'ok', detail: `${subject} can be read by those who need it`, fix: null };
}

function ownFix(file: string, readers: readonly Reader[]): string {
  const [first, second] = readers.flatMap(({ account }) => (account === undefined ? [] : [account.uid]));
  if (first === undefined) return `chmod u+r ${file}`;
  return second === undefined ? `chown ${first} ${file} && chmod 0400 ${file}` : `chown ${first}:${second} ${file} && chmod 0440 ${file}`;
}

/** Looks at one file, and asks the system whether each reader may read it: its own rules decide, lists of access rights among them. */
export function lookAt({ file, readers }: CredentialFile): FileFacts {
  try {
    const { mode } = statSync(file);
    return { mode, mayRead: readers.map((reader) => mayRead(file, reader)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    // This account may not even look there, and has no more rights as its own reader; another one was not asked.
    return { mode: 0, mayRead: readers.map(({ account }) => (account === undefined ? false : undefined)) };
  }
}

function mayRead(file: string, { account }: Reader): boolean | undefined {
  const options = { cwd: '/', stdio: 'ignore', timeout: ASK_TIMEOUT_MS, ...(account === undefined ? {} : account) } as const;
  const { status } = spawnSync('/bin/sh', ['-c', 'test -r "$0"', file], options);
  return status === 0 ? true : status === 1 ? false : undefined;
}

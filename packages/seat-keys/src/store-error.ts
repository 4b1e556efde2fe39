import { STORE_FAULTS, type StoreFault } from './reasons.ts';

/** Why a store could not be used, of safe parts alone: never a helper's text. */
export interface StoreError {
  readonly fault: StoreFault;
  /** Exit code of the credential helper. */
  readonly exitCode?: number;
  /** The system's error code, such as `EACCES`. */
  readonly systemCode?: string;
}

const WORDING: Readonly<Record<StoreFault, string>> = {
  locked: 'the store is locked and asks for a person: log in at the console, or unlock the keychain first',
  denied: 'the store refuses access to this user',
  helper_missing: 'the credential helper is not installed, or there is none for this system',
  service_missing: 'no keychain answers in this session: log in at a desktop, or start its service',
  helper_failed: 'the credential helper failed',
  io: 'the store could not be read or written',
  corrupt: 'the stored entry is not what was written',
  timed_out: 'the store gave no answer in time',
  unknown: 'the store failed in a way that is not described, since its text could hold a secret',
};

/** Codes of a system that are repeated; closed, since any text may stand where a code should. */
const SYSTEM_CODES: readonly string[] = (
  'EACCES EAGAIN EBADF EBUSY ECANCELED ECONNREFUSED ECONNRESET EDQUOT EEXIST EFBIG EINTR EINVAL EIO EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ' +
  'ENODEV ENOENT ENOMEM ENOSPC ENOTCONN ENOTDIR ENOTEMPTY ENOTSUP ENXIO EPERM EPIPE EROFS ESTALE ETIMEDOUT ETXTBSY EXDEV'
).split(' ');

/** One sentence about a store's failure, of a fixed wording, the exit code and the system's code. */
export function describeStoreError(error: StoreError): string {
  const parts = [
    ...(error.exitCode === undefined ? [] : [`exit code ${error.exitCode}`]),
    ...(error.systemCode === undefined || !SYSTEM_CODES.includes(error.systemCode) ? [] : [error.systemCode]),
  ];
  return parts.length === 0 ? WORDING[error.fault] : `${WORDING[error.fault]} (${parts.join(', ')})`;
}

/** The store's failure behind a thrown value: only codes of closed lists are taken from it. */
export function storeErrorOf(thrown: unknown): StoreError {
  if (typeof thrown !== 'object' || thrown === null) return { fault: 'unknown' };
  const fault = 'fault' in thrown ? STORE_FAULTS.find((known) => known === thrown.fault) : undefined;
  const exitCode = 'exitCode' in thrown && Number.isSafeInteger(thrown.exitCode) ? Number(thrown.exitCode) : undefined;
  const code = 'code' in thrown && typeof thrown.code === 'string' && SYSTEM_CODES.includes(thrown.code) ? thrown.code : undefined;
  return {
    fault: fault ?? (code === undefined ? 'unknown' : code === 'EACCES' || code === 'EPERM' ? 'denied' : 'io'),
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(code === undefined ? {} : { systemCode: code }),
  };
}

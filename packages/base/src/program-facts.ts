import { readFileSync } from 'node:fs';
import { CodedError, messageOf } from './coded-error.ts';

/** Which process of a program speaks, and when. */
export interface Speaker {
  readonly role: string;
  readonly pid: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/**
 * Why a program could not go on, as the last line of its log, without a line end: JSON with `level` 60, `time`, `role`, `pid`, `msg`; `code` and
 * `action` of a coded error, `stack` of any other. Its supervisor finds it by the pid.
 */
export function fatalLine(error: unknown, { role, pid, atMs }: Speaker): string {
  const more =
    error instanceof CodedError ? { code: error.code, action: error.action } : { stack: error instanceof Error ? error.stack : undefined };
  return JSON.stringify({ level: 60, time: atMs, role, pid, ...more, msg: messageOf(error) });
}

/** The version of a program: a bundle carries it; in a checkout it is that of the package whose `package.json` is given. */
export function programVersion(packageFile: URL): string {
  if (process.env.FIRECREW_BUILD_VERSION !== undefined) return process.env.FIRECREW_BUILD_VERSION;
  const text: unknown = JSON.parse(readFileSync(packageFile, 'utf8'));
  return typeof text === 'object' && text !== null && 'version' in text && typeof text.version === 'string' ? text.version : '0.0.0';
}

import { readFile, stat } from 'node:fs/promises';
import { CodedError, codeOf } from '@firecrew/base';
import { SeatKey } from '@firecrew/seat-keys';
import type { SecretSource } from './issuer-file.ts';
import { isKey } from './read-answer.ts';

/** Bytes of a file with a secret: 4,096 characters and the end of their line. */
const FILE_MAX_BYTES = 4_098;

/** Reads a secret from where a file names it. Throws `issuer_secret_unreadable`; no message holds anything of what was read. */
export async function readSecret(source: SecretSource, env: Readonly<Record<string, string | undefined>>): Promise<SeatKey> {
  const place = 'file' in source ? source.file : `the variable ${source.variable}`;
  const fault = (why: string) =>
    new CodedError('issuer_secret_unreadable', `the secret in ${place} ${why}; nothing was sent`, {
      id: place,
      action: 'Write one line of at most 4096 printable characters without spaces there.',
    });
  let text = 'variable' in source ? env[source.variable] : undefined;
  if ('file' in source) {
    try {
      text = (await stat(source.file)).size > FILE_MAX_BYTES ? '' : await readFile(source.file, 'utf8');
    } catch (error) {
      throw fault(`cannot be read (${codeOf(error) ?? 'unknown'})`);
    }
  }
  if (text === undefined || text === '') throw fault('is missing or too long');
  const secret = text.replace(/\r?\n$/, '');
  if (!isKey(secret)) throw fault('is no secret');
  return new SeatKey(secret);
}

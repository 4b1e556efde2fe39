import { readFile, stat } from 'node:fs/promises';
import type { CredentialSource } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import { CREDENTIAL_MAX_CHARACTERS, CREDENTIAL_MIN_CHARACTERS, isCredential } from '@firecrew/model-route';

/** Bytes of a credential file: a credential and the end of its line. */
const FILE_MAX_BYTES = CREDENTIAL_MAX_CHARACTERS + 2;

/** A source that is read as it is; what a command prints comes by its login. */
export type ReadableSource = Exclude<NonNullable<CredentialSource>, { readonly command: readonly string[] }>;

/** Reads the credential of a route as it is now. Throws `model_credential_unreadable`; no message holds anything of what was read. */
export async function readCredential(source: ReadableSource, env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const place = 'file' in source ? source.file : `the variable ${source.variable}`;
  const fault = (why: string, cause?: unknown) =>
    new CodedError('model_credential_unreadable', `the credential of a model route in ${place} ${why}`, {
      id: place,
      action: `Write one line of ${CREDENTIAL_MIN_CHARACTERS} to ${CREDENTIAL_MAX_CHARACTERS} printable characters without spaces, in a file that the account of the credential broker can read (docs/operating.md, Accounts); it is read again at once.`,
      ...(cause === undefined ? {} : { cause }),
    });
  const text =
    'file' in source
      ? await readSmall(source.file).catch((cause: unknown) => fault(`cannot be read: ${messageOf(cause)}`, cause))
      : env[source.variable];
  if (text instanceof Error) throw text;
  if (text === undefined) throw fault('is missing');
  const credential = text.replace(/\r?\n$/, '');
  if (!isCredential(credential)) throw fault('is no credential');
  return credential;
}

async function readSmall(file: string): Promise<string | undefined> {
  const { size } = await stat(file);
  return size > FILE_MAX_BYTES ? '' : await readFile(file, 'utf8');
}

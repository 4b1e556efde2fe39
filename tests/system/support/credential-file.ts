import { chown, writeFile } from 'node:fs/promises';

/** Uid of the credential broker of a node agent that is started by root. */
export const BROKER_UID = 199_998;

/** Writes the credential of a model route as an operator has to: for the account of the broker alone. */
export async function writeCredential(file: string, credential: string): Promise<void> {
  await writeFile(file, credential, { mode: 0o600 });
  if (process.getuid?.() === 0) await chown(file, BROKER_UID, BROKER_UID);
}

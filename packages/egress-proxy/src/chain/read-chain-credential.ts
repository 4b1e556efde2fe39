import { open } from 'node:fs/promises';

/** Where the operator keeps the credential of their proxy: one line `user:password`. */
export type ChainCredentialSource = { readonly file: string } | { readonly variable: string };

/** Bytes of a credential; the end of its line is not counted. */
export const CHAIN_CREDENTIAL_MAX_BYTES = 1_024;
// The name of a user ends at the first colon (RFC 7617); a control character would end a line of the request.
const CREDENTIAL = /^[^:\x00-\x1f\x7f]+:[^\x00-\x1f\x7f]*$/u;

/**
 * Reads the credential as it is now, so that one that was renewed is used at once. Throws an error that says where it was looked for and
 * nothing of what was found.
 */
export async function readChainCredential(
  source: ChainCredentialSource,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const place = 'file' in source ? source.file : `the variable ${source.variable}`;
  const text = 'file' in source ? await readSmall(source.file) : env[source.variable];
  const credential = text?.replace(/\r?\n$/, '');
  if (credential === undefined) throw new Error(`the credential of the egress proxy in ${place} is missing`);
  if (Buffer.byteLength(credential) > CHAIN_CREDENTIAL_MAX_BYTES || !CREDENTIAL.test(credential))
    throw new Error(`the credential of the egress proxy in ${place} is not one line of user:password`);
  return credential;
}

async function readSmall(file: string): Promise<string> {
  const handle = await open(file);
  try {
    // One byte past the longest line: what is longer is refused by its length, however long it is.
    const piece = Buffer.alloc(CHAIN_CREDENTIAL_MAX_BYTES + 3);
    const { bytesRead } = await handle.read(piece, 0, piece.length, 0);
    return piece.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

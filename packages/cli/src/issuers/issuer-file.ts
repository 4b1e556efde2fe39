import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import { seatKeyIdSchema, seatRoleSchema } from '@firecrew/protocol';
import * as z from 'zod';
import { PLACEHOLDERS, type Placeholder, placeholdersOf } from './fill-template.ts';

/** Largest issuer file, in bytes. */
export const ISSUER_FILE_MAX_BYTES = 64 * 1024;
/** How long a call of an issuer may take from its start to the last byte of the answer, in ms. */
export const DEFAULT_CALL_TIMEOUT_MS = 15_000;

const textSchema = z.string().max(2_000);
const statusesSchema = z.array(z.int().min(200).max(299)).min(1).max(10);
/** RFC 6901: where a value lies in the answer. */
const pointerSchema = z
  .string()
  .regex(/^(\/([^~/]|~0|~1)*)+$/, 'must be a JSON pointer such as /data/key')
  .max(500);
const headerNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be a header name in lower case')
  .refine(
    (name) => !['host', 'connection', 'content-length', 'transfer-encoding', 'te', 'upgrade'].includes(name),
    'is set by HTTP itself',
  );
const sourceSchema = z.union([
  z.strictObject({ file: z.string().startsWith('/', 'must be an absolute path') }),
  z.strictObject({ variable: z.string().regex(/^[A-Z_][A-Z0-9_]{0,99}$/, 'must be the name of a variable') }),
]);
/** Where a secret is kept. */
export type SecretSource = z.infer<typeof sourceSchema>;

const method = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']);
const callShape = {
  method,
  path: z.string().startsWith('/').max(2_000),
  headers: z.record(headerNameSchema, textSchema).optional(),
  body: z.json().optional(),
  statuses: statusesSchema,
};
const minting = {
  ...callShape,
  key: pointerSchema.describe('Where the answer holds the key.'),
  keyId: pointerSchema.describe('Where it holds the id of the key.'),
  expiresAt: pointerSchema.optional().describe('Where it says when the key ends: a time with its zone, or seconds since 1970.'),
};
const goneShape = z.array(z.int().min(400).max(499)).max(10).optional();

const callSchema = z.strictObject(callShape);
const mintSchema = z.strictObject(minting);
const rotateSchema = z.strictObject({ ...minting, keyId: pointerSchema.optional(), gone: goneShape });
const revokeSchema = z.strictObject({ ...callShape, gone: goneShape });
const verifySchema = z.strictObject({ ...callShape, as: z.enum(['admin', 'key']), gone: goneShape });
/** One call of an issuer, as its file describes it. */
export type IssuerCall = z.infer<typeof callSchema>;
/** A call that answers with a key. */
export type MintCall = z.infer<typeof mintSchema> | z.infer<typeof rotateSchema>;

const nameSchema = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be a lower-case word of at most 32 characters');
const httpSchema = z.strictObject({
  version: z.literal(1),
  name: nameSchema,
  kind: z.literal('http'),
  url: z.string().max(500).refine(isUsable, 'must be an https URL, or http on loopback, without user, query and fragment'),
  credential: z.strictObject({ header: headerNameSchema, prefix: z.string().max(40).optional(), from: sourceSchema }),
  timeoutMs: z.int().min(100).max(120_000).optional(),
  mint: mintSchema,
  revoke: revokeSchema,
  rotate: rotateSchema.optional(),
  whoami: verifySchema.optional(),
  mintRight: callSchema.optional(),
});
const staticSchema = z.strictObject({
  version: z.literal(1),
  name: nameSchema,
  kind: z.literal('static'),
  keys: z.record(seatRoleSchema, z.strictObject({ keyId: seatKeyIdSchema, from: sourceSchema })),
});
export type HttpIssuerFile = z.infer<typeof httpSchema>;

/** What may stand in the templates of each call. */
const ALLOWED: Readonly<Record<string, readonly Placeholder[]>> = {
  mint: ['seatId', 'role', 'workspace', 'workspaceId', 'name', 'requestId'],
  rotate: ['keyId', 'seatId', 'role', 'workspace', 'workspaceId', 'name', 'requestId'],
  revoke: ['keyId', 'successor', 'workspace', 'workspaceId'],
  whoami: ['keyId', 'workspace', 'workspaceId'],
  mintRight: ['workspace', 'workspaceId'],
};

const issuerSchema = z.discriminatedUnion('kind', [httpSchema, staticSchema]).superRefine((file, context) => {
  if (file.kind !== 'http') return;
  for (const name of ['mint', 'rotate', 'revoke', 'whoami', 'mintRight'] as const) {
    const call = file[name];
    if (call === undefined) continue;
    const issue = (message: string, field: string) => context.addIssue({ code: 'custom', path: [name, field], message });
    for (const found of placeholdersOf([call.path, call.headers ?? {}, call.body ?? null])) {
      if (!PLACEHOLDERS.some((known) => known === found)) issue(`{${found}} is no placeholder`, 'path');
      else if (!ALLOWED[name]?.some((allowed) => allowed === found)) issue(`{${found}} is not known in this call`, 'path');
    }
    if (call.method === 'GET' && call.body !== undefined) issue('a GET has none', 'body');
    if (call.path.includes('#')) issue('has no fragment', 'path');
    if (Object.keys(call.headers ?? {}).includes(file.credential.header)) issue('holds the header of the credential', 'headers');
  }
});
/** An issuer as its file describes it. */
export type IssuerFile = z.infer<typeof issuerSchema>;

/** An issuer in a parsed file, or what is wrong with it. */
export function parseIssuer(value: unknown): { readonly issuer: IssuerFile } | { readonly faults: string } {
  const parsed = issuerSchema.safeParse(value);
  if (parsed.success) return { issuer: parsed.data };
  return { faults: parsed.error.issues.map((issue) => `${issue.path.map(String).join('.') || '(top)'}: ${issue.message}`).join('; ') };
}

/** Reads an issuer file. Throws `issuer_invalid`: also for one that others may write, since it says where the credential goes. */
export async function readIssuerFile(path: string): Promise<IssuerFile> {
  const text = await readBounded(path);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw invalid(path, 'is not JSON');
  }
  const parsed = parseIssuer(json);
  if ('faults' in parsed) throw invalid(path, `is not valid: ${parsed.faults}`);
  return parsed.issuer;
}

async function readBounded(path: string): Promise<string> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size > ISSUER_FILE_MAX_BYTES)
        throw invalid(path, `is no file of at most ${ISSUER_FILE_MAX_BYTES} bytes`);
      if ((stats.mode & 0o022) !== 0) throw invalid(path, 'may be written by others than its owner');
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw error instanceof CodedError ? error : invalid(path, `cannot be read: ${messageOf(error)}`);
  }
}

/** Whether secrets may be sent to a URL: https, or http that does not leave the machine. */
export function isUsable(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  if (username !== '' || password !== '' || search !== '' || hash !== '') return false;
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}

function invalid(path: string, why: string): CodedError {
  return new CodedError('issuer_invalid', `the issuer file ${path} ${why}`, {
    id: path,
    action: 'Correct it, or leave "seatIssuer" out of config.json to use the server itself; docs/operating.md describes the file.',
  });
}

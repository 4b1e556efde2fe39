import { createByteCursor } from './byte-cursor.ts';
import type { HelloFault } from './reasons.ts';

/** What is read of a ClientHello. */
export interface ClientHello {
  /** The host name of the server_name extension as sent, one character for each byte; undefined without the extension. */
  readonly serverName: string | undefined;
  /** Whether an encrypted inner hello (or a fake one, which looks the same) is present; then `serverName` is the outer name. */
  readonly encryptedHello: boolean;
}

export type ClientHelloBodyResult =
  | { readonly ok: true; readonly hello: ClientHello }
  | { readonly ok: false; readonly reason: HelloFault };

const RANDOM_BYTES = 32;
const SESSION_ID_MAX_BYTES = 32;
const TLS_MAJOR = 3;
const EXTENSION_SERVER_NAME = 0;
const EXTENSION_ENCRYPTED_HELLO = 0xfe0d;
const NAME_TYPE_HOST = 0;

function refuse(reason: HelloFault): ClientHelloBodyResult {
  return { ok: false, reason };
}

/** The one host name of a server_name extension (RFC 6066 section 3), or undefined where the bytes say anything else. */
function readServerName(data: Uint8Array): string | undefined {
  const outer = createByteCursor(data);
  const list = outer.vector(2);
  if (list === undefined || !outer.atEnd) return undefined;
  const inner = createByteCursor(list);
  const type = inner.uint(1);
  const name = inner.vector(2);
  if (type !== NAME_TYPE_HOST || name === undefined || name.length === 0 || !inner.atEnd) return undefined;
  return String.fromCharCode(...name);
}

function readExtensions(data: Uint8Array): ClientHelloBodyResult {
  const cursor = createByteCursor(data);
  const seen = new Set<number>();
  let serverName: string | undefined;
  while (!cursor.atEnd) {
    const type = cursor.uint(2);
    const body = cursor.vector(2);
    if (type === undefined || body === undefined) return refuse('bad_hello');
    if (seen.has(type)) return refuse('repeated_extension');
    seen.add(type);
    if (type !== EXTENSION_SERVER_NAME) continue;
    serverName = readServerName(body);
    if (serverName === undefined) return refuse('bad_server_name');
  }
  return { ok: true, hello: { serverName, encryptedHello: seen.has(EXTENSION_ENCRYPTED_HELLO) } };
}

/** Reads the body of a ClientHello (RFC 8446 section 4.1.2) without its four-byte handshake header; every length must fit exactly. */
export function parseClientHelloBody(data: Uint8Array): ClientHelloBodyResult {
  const cursor = createByteCursor(data);
  const major = cursor.uint(1);
  const minor = cursor.uint(1);
  const random = cursor.bytes(RANDOM_BYTES);
  const session = cursor.vector(1);
  const suites = cursor.vector(2);
  const compression = cursor.vector(1);
  if (major !== TLS_MAJOR || minor === undefined || random === undefined) return refuse('bad_hello');
  if (session === undefined || session.length > SESSION_ID_MAX_BYTES) return refuse('bad_hello');
  if (suites === undefined || suites.length === 0 || suites.length % 2 !== 0) return refuse('bad_hello');
  if (compression === undefined || compression.length === 0) return refuse('bad_hello');
  if (cursor.atEnd) return { ok: true, hello: { serverName: undefined, encryptedHello: false } };
  const extensions = cursor.vector(2);
  return extensions === undefined || !cursor.atEnd ? refuse('bad_hello') : readExtensions(extensions);
}

import { type ClientHello, parseClientHelloBody } from './parse-client-hello.ts';
import type { HelloFault } from './reasons.ts';

/** Longest ClientHello that is read, bytes of the handshake message body. */
export const CLIENT_HELLO_MAX_BYTES = 16_384;
/** Most TLS records that one ClientHello may be cut into. */
export const CLIENT_HELLO_RECORDS_MAX = 1024;
/** Most bytes that can be needed before a verdict: the hello, its header and the headers of its records. A caller buffers no more than this and one chunk. */
export const CLIENT_HELLO_BUFFER_MAX_BYTES = CLIENT_HELLO_MAX_BYTES + 4 + CLIENT_HELLO_RECORDS_MAX * 5;

/** `need-more`: feed the next bytes. The other two are final. Bytes after the hello are not looked at. */
export type ClientHelloResult =
  | { readonly state: 'need-more' }
  | { readonly state: 'hello'; readonly hello: ClientHello }
  | { readonly state: 'malformed'; readonly reason: HelloFault };

/** Reads one ClientHello from chunks of any size, also when it is cut into many TLS records. It copies what it needs and forwards nothing. */
export interface ClientHelloReader {
  push(chunk: Uint8Array): ClientHelloResult;
  /** The verdict when no more bytes come. */
  end(): ClientHelloResult;
}

const RECORD_HEADER_BYTES = 5;
const RECORD_MAX_BYTES = 16_384;
const RECORD_HANDSHAKE = 22;
const TLS_MAJOR = 3;
const HANDSHAKE_HEADER_BYTES = 4;
const HANDSHAKE_CLIENT_HELLO = 1;

/** A reader for the first bytes of one tunnel. */
export function createClientHelloReader(): ClientHelloReader {
  const header = new Uint8Array(RECORD_HEADER_BYTES);
  let handshake = new Uint8Array(HANDSHAKE_HEADER_BYTES);
  let headerLength = 0;
  let recordLeft = 0;
  let records = 0;
  let length = 0;
  let wanted = HANDSHAKE_HEADER_BYTES;
  let result: ClientHelloResult = { state: 'need-more' };

  const fail = (reason: HelloFault): ClientHelloResult => {
    result = { state: 'malformed', reason };
    return result;
  };

  function takeHeaderByte(byte: number): ClientHelloResult {
    header[headerLength] = byte;
    headerLength += 1;
    if (headerLength === 1 && byte !== RECORD_HANDSHAKE) return fail(records === 0 ? 'not_tls' : 'bad_record');
    if (headerLength === 2 && byte !== TLS_MAJOR) return fail(records === 0 ? 'not_tls' : 'bad_record');
    if (headerLength < RECORD_HEADER_BYTES) return result;
    recordLeft = (header[3] ?? 0) * 256 + (header[4] ?? 0);
    headerLength = 0;
    records += 1;
    if (recordLeft === 0 || recordLeft > RECORD_MAX_BYTES || records > CLIENT_HELLO_RECORDS_MAX) return fail('bad_record');
    return result;
  }

  function checkHandshakeHeader(): ClientHelloResult {
    if (length >= 1 && handshake[0] !== HANDSHAKE_CLIENT_HELLO) return fail('bad_hello');
    if (length !== HANDSHAKE_HEADER_BYTES) return result;
    const body = (handshake[1] ?? 0) * 65_536 + (handshake[2] ?? 0) * 256 + (handshake[3] ?? 0);
    if (body > CLIENT_HELLO_MAX_BYTES) return fail('hello_too_large');
    wanted = HANDSHAKE_HEADER_BYTES + body;
    const whole = new Uint8Array(wanted);
    whole.set(handshake);
    handshake = whole;
    return result;
  }

  function finishWhenWhole(): void {
    if (result.state !== 'need-more' || length < HANDSHAKE_HEADER_BYTES || length < wanted) return;
    const parsed = parseClientHelloBody(handshake.subarray(HANDSHAKE_HEADER_BYTES, wanted));
    if (parsed.ok) result = { state: 'hello', hello: parsed.hello };
    else fail(parsed.reason);
  }

  /** Copies as much of the record as this step wants; returns how many bytes were taken. */
  function takeBody(chunk: Uint8Array): number {
    const size = Math.min(chunk.length, recordLeft, wanted - length);
    handshake.set(chunk.subarray(0, size), length);
    length += size;
    recordLeft -= size;
    if (length <= HANDSHAKE_HEADER_BYTES) checkHandshakeHeader();
    finishWhenWhole();
    return size;
  }

  return {
    push(chunk) {
      let offset = 0;
      while (offset < chunk.length && result.state === 'need-more') {
        if (recordLeft > 0) offset += takeBody(chunk.subarray(offset));
        else {
          takeHeaderByte(chunk[offset] ?? 0);
          offset += 1;
        }
      }
      return result;
    },
    end() {
      if (result.state === 'need-more') fail('truncated_hello');
      return result;
    },
  };
}

import {
  CLIENT_HELLO_BUFFER_MAX_BYTES,
  type ConnectHeadResult,
  createClientHelloReader,
  createConnectHeadReader,
  decideServerName,
} from '@firecrew/egress-policy';
import type { ByteSource } from './byte-source.ts';
import type { Cut } from './cut.ts';
import { raceDeadline } from './deadline.ts';
import type { RefusalReason } from './reasons.ts';

type ConnectRequest = Extract<ConnectHeadResult, { state: 'request' }>;

/** `silent`: the peer came and went without a byte, which is worth no line. */
export type HeadStep =
  | { readonly kind: 'request'; readonly request: ConnectRequest }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'silent' }
  | { readonly kind: 'cancelled' };

/** Reads the head of one connection; bytes after it go back to the source. */
export async function readHead(source: ByteSource, ms: number, cut: Cut): Promise<HeadStep> {
  const reader = createConnectHeadReader();
  const read = async (): Promise<ConnectHeadResult> => {
    for (;;) {
      const event = await source.next();
      if (event.kind !== 'data') return reader.end();
      const result = reader.push(event.chunk);
      if (result.state !== 'need-more') return result;
    }
  };
  const raced = await raceDeadline(read(), ms, cut);
  if (raced.kind === 'cancelled') return { kind: 'cancelled' };
  if (raced.kind === 'deadline') {
    const fault = reader.end();
    const known = fault.state === 'malformed' && fault.reason !== 'truncated_head';
    return { kind: 'refused', reason: known ? fault.reason : 'head_timeout' };
  }
  if (reader.bytesRead === 0) return { kind: 'silent' };
  const head = raced.value;
  if (head.state !== 'request') return { kind: 'refused', reason: head.state === 'malformed' ? head.reason : 'truncated_head' };
  source.unread(head.rest);
  return { kind: 'request', request: head };
}

/** `gone`: the guest left before it said anything in the tunnel. */
export type HelloStep =
  | { readonly kind: 'matches' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'gone' }
  | { readonly kind: 'cancelled' };

/** Reads the ClientHello of one tunnel and compares its server name with `host`; every byte goes back to the source. */
export async function checkHello(source: ByteSource, host: string, ms: number, cut: Cut): Promise<HelloStep> {
  const reader = createClientHelloReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const read = async (): Promise<HelloStep> => {
    for (;;) {
      const event = await source.next();
      if (event.kind !== 'data' && size === 0) return { kind: 'gone' };
      if (event.kind === 'data') {
        chunks.push(event.chunk);
        size += event.chunk.length;
      }
      const result = event.kind === 'data' ? reader.push(event.chunk) : reader.end();
      if (result.state === 'malformed') return { kind: 'refused', reason: result.reason };
      if (result.state === 'hello') {
        const decision = decideServerName({ host, serverName: result.hello.serverName });
        return decision.verdict === 'allowed' ? { kind: 'matches' } : { kind: 'refused', reason: decision.reason };
      }
      if (size > CLIENT_HELLO_BUFFER_MAX_BYTES) return { kind: 'refused', reason: 'hello_too_large' };
    }
  };
  const raced = await raceDeadline(read(), ms, cut);
  if (raced.kind === 'cancelled') return { kind: 'cancelled' };
  if (raced.kind === 'deadline') return { kind: 'refused', reason: 'hello_timeout' };
  source.unread(Buffer.concat(chunks));
  return raced.value;
}

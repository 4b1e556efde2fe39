import type { Duplex } from 'node:stream';
import { createProxyAnswerReader, decideProxyStatus, type TunnelProtocol } from '@firecrew/egress-policy';
import { DialFault } from '../dial.ts';

/** One tunnel through the operator's proxy. */
export interface ChainedRequest {
  /** `HOST:PORT` as the proxy is asked for it. */
  readonly authority: string;
  /** A connection to the proxy. */
  readonly stream: Duplex;
  /** `user:password`; undefined for a proxy that wants none. */
  readonly credential: string | undefined;
  readonly protocol: TunnelProtocol;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal;
}

/**
 * Asks the proxy for a tunnel and gives the stream once it is open; its first unread byte is the first of the tunnel. Throws a `DialFault` after the stream is
 * destroyed. Nothing of the guest is sent: the request is ours alone.
 */
export async function openChained(request: ChainedRequest): Promise<Duplex> {
  const { stream, authority, credential } = request;
  try {
    const head = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`];
    if (credential !== undefined) head.push(`Proxy-Authorization: Basic ${Buffer.from(credential).toString('base64')}`);
    stream.write(`${head.join('\r\n')}\r\n\r\n`);
    const { status, rest } = await readAnswer(request);
    const fault = decideProxyStatus(status);
    // The proxy failed to reach this target; at another address of it it may fare better.
    if (fault !== undefined) throw new DialFault(fault, fault !== 'chain_upstream_failed');
    // A server of TLS is silent until the client spoke: what is here already is none of its bytes.
    if (rest.length > 0 && request.protocol === 'tls') throw new DialFault('chain_early_bytes', true);
    if (rest.length > 0) stream.unshift(rest);
    return stream;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

function readAnswer({ stream, signal }: ChainedRequest): Promise<{ readonly status: number; readonly rest: Uint8Array }> {
  const reader = createProxyAnswerReader();
  return new Promise((resolve, reject) => {
    const settle = (finish: () => void): void => {
      stream.off('data', onData);
      stream.off('end', onLoss);
      stream.off('close', onLoss);
      signal.removeEventListener('abort', onLoss);
      stream.pause();
      finish();
    };
    const onLoss = (): void => settle(() => reject(new DialFault('chain_answer_invalid', true)));
    const onData = (chunk: Uint8Array): void => {
      const answer = reader.push(chunk);
      if (answer.state === 'answer') settle(() => resolve(answer));
      else if (answer.state === 'malformed') onLoss();
    };
    stream.on('data', onData);
    stream.on('end', onLoss);
    stream.on('close', onLoss);
    signal.addEventListener('abort', onLoss, { once: true });
    if (stream.destroyed || signal.aborted) onLoss();
  });
}

import { lookup as systemLookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { ChainError, openOperatorTunnel } from '@firecrew/egress-proxy';
import type { BrokerRoute } from './routes.ts';

/** Time of one probe, in `ms`. */
export const PROBE_TIMEOUT_MS = 15_000;

/** How far the way to an upstream leads. `detail` is a code of the system or of TLS, or what the operator's proxy did; it names no host. */
export type UpstreamProbe =
  | { readonly ok: true }
  | { readonly ok: false; readonly stage: 'dns' | 'connect' | 'proxy' | 'tls'; readonly detail: string };

type Stage = Extract<UpstreamProbe, { readonly ok: false }>['stage'];

/**
 * Goes the way of a model call as far as verified TLS, and sends nothing more: no request, and no credential but that of the operator's proxy, to that proxy. It
 * goes by the clock as well: what takes longer than `timeoutMs` fails where it was. Never rejects.
 */
export async function probeUpstream(
  route: Pick<BrokerRoute, 'upstream' | 'ca' | 'chain'>,
  timeoutMs: number = PROBE_TIMEOUT_MS,
  lookup: (host: string) => Promise<unknown> = systemLookup,
): Promise<UpstreamProbe> {
  const { upstream, ca, chain } = route;
  const { host, port, isTls } = upstream;
  const signal = AbortSignal.timeout(timeoutMs);
  let stage: Stage = chain === undefined ? 'dns' : 'proxy';
  const opened: Duplex[] = [];
  try {
    if (chain !== undefined) opened.push(await openOperatorTunnel({ chain, host, port, signal, totalMs: timeoutMs }));
    else {
      if (isIP(host) === 0) await within(lookup(host), signal);
      stage = 'connect';
      const socket = connect({ host, port });
      opened.push(socket);
      await eventOf(socket, 'connect', signal);
    }
    stage = 'tls';
    // cast: what is opened here, and a tunnel, is a socket
    const socket = opened[0] as Socket;
    if (isTls) {
      const name = isIP(host) === 0 ? { servername: host } : {};
      const secured = connectTls({ socket, host, ...name, ...(ca === undefined ? {} : { ca }), rejectUnauthorized: true });
      opened.push(secured);
      await eventOf(secured, 'secureConnect', signal);
    }
    return { ok: true };
  } catch (error) {
    return { ok: false, stage, detail: signal.aborted ? `nothing came within ${timeoutMs} ms` : detailOf(error) };
  } finally {
    for (const stream of opened) stream.on('error', () => undefined);
    // TLS has taken the socket over, and ends it: ended before it, the socket would take its handle from under it.
    opened.at(-1)?.destroy();
  }
}

function detailOf(error: unknown): string {
  if (error instanceof ChainError) return error.detail;
  const code = (error as NodeJS.ErrnoException).code;
  return typeof code === 'string' ? code : 'it ended without a reason';
}

async function eventOf(stream: Duplex, event: string, signal: AbortSignal): Promise<void> {
  const happened = new Promise<void>((resolve, reject) => {
    stream.once(event, resolve);
    stream.on('error', reject);
    stream.once('close', () => reject(new Error('closed')));
  });
  await within(happened, signal);
}

async function within<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return await new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new Error('late'));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

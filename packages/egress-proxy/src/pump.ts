import type { Duplex } from 'node:stream';
import { type BytesSpent, formatBudget, type SpentBudget } from '@firecrew/egress-policy';
import type { TunnelAccount } from './budget-book.ts';
import type { ByteSource } from './byte-source.ts';
import type { Cut } from './cut.ts';
import type { CancelReason, EndReason } from './reasons.ts';

export interface TunnelEnd {
  readonly reason: EndReason;
  readonly closedBy: 'guest' | 'upstream' | 'proxy';
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The budget that ended it. */
  readonly rule?: string;
}

interface Tunnel {
  readonly guest: ByteSource;
  readonly upstream: ByteSource;
  readonly idleMs: number;
  /** Asked before each chunk in either direction; false ends the tunnel before the chunk is forwarded. */
  readonly mayForward: () => boolean;
  /** Charged before a byte is forwarded; what it does not grant is not, and ends the tunnel. */
  readonly account: Pick<TunnelAccount, 'take'>;
  readonly cut: Cut;
  /** Why it was cut. */
  readonly cancelReason: () => CancelReason;
}

type DirectionEnd = 'ended' | 'source_gone' | 'sink_gone' | 'lease_lost' | SpentBudget<BytesSpent>;

/** Resolves when the stream takes bytes again, and also when it never will. */
function writable(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
    if (stream.destroyed || !stream.writableNeedDrain) done();
  });
}

/** Ends the writing side and waits until its last byte is handed over, or until the stream is gone. */
function endWriting(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableFinished) return resolve();
    stream.once('close', resolve);
    stream.end(resolve);
  });
}

async function pumpOneWay(
  from: ByteSource,
  to: Duplex,
  { mayForward, account }: Pick<Tunnel, 'mayForward' | 'account'>,
  onBytes: (bytes: number) => void,
  onEnd: () => void,
): Promise<DirectionEnd> {
  for (;;) {
    const event = await from.next();
    if (event.kind === 'gone') return 'source_gone';
    if (event.kind === 'end') {
      onEnd();
      await endWriting(to);
      return 'ended';
    }
    if (to.destroyed) return 'sink_gone';
    if (!mayForward()) return 'lease_lost';
    const { granted, spent } = account.take(event.chunk.length);
    onBytes(granted);
    if (spent !== undefined) {
      if (granted > 0) to.write(event.chunk.subarray(0, granted));
      return spent;
    }
    if (!to.write(event.chunk)) await writable(to);
  }
}

/** Relays both ways with back-pressure until both sides are done, one is lost, nothing moves for `idleMs`, or the tunnel is cut; then both streams are destroyed. */
export function pumpTunnel(tunnel: Tunnel): Promise<TunnelEnd> {
  const { guest, upstream, cut } = tunnel;
  const bytes = { in: 0, out: 0 };
  let firstToEnd: 'guest' | 'upstream' | undefined;
  return new Promise((resolve) => {
    const finish = (reason: EndReason, closedBy: TunnelEnd['closedBy'], rule?: string): void => {
      clearTimeout(idle);
      cut.leave(onCut);
      guest.stream.destroy();
      upstream.stream.destroy();
      resolve({ reason, closedBy, bytesIn: bytes.in, bytesOut: bytes.out, ...(rule !== undefined && { rule }) });
    };
    const onCut = (): void => finish(tunnel.cancelReason(), 'proxy');
    const idle = setTimeout(() => finish('idle_timeout', 'proxy'), tunnel.idleMs);
    const lost = (end: Exclude<DirectionEnd, object>, source: 'guest' | 'upstream'): void => {
      const sink = source === 'guest' ? 'upstream' : 'guest';
      const gone = end === 'source_gone' ? source : sink;
      if (end === 'lease_lost') finish('lease_lost', 'proxy');
      else finish(`${gone}_reset`, gone);
    };
    const run = async (source: 'guest' | 'upstream'): Promise<void> => {
      const [from, to] = source === 'guest' ? [guest, upstream.stream] : [upstream, guest.stream];
      const onBytes = (count: number): void => {
        bytes[source === 'guest' ? 'out' : 'in'] += count;
        idle.refresh();
      };
      const onEnd = (): void => {
        firstToEnd ??= source;
      };
      const end = await pumpOneWay(from, to, tunnel, onBytes, onEnd);
      if (typeof end === 'object') finish(end.reason, 'proxy', formatBudget(end));
      else if (end !== 'ended') lost(end, source);
    };
    // A side that is lost after its orderly end shows only here, since nothing more is read from it.
    guest.stream.once('close', () => guest.stream.writableFinished || lost('sink_gone', 'upstream'));
    upstream.stream.once('close', () => upstream.stream.writableFinished || lost('sink_gone', 'guest'));
    if (cut.isMade) return onCut();
    cut.join(onCut);
    void Promise.all([run('guest'), run('upstream')]).then(() => {
      const closedBy = firstToEnd ?? 'guest';
      finish(`${closedBy}_closed`, closedBy);
    });
  });
}

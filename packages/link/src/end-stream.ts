import type { Duplex } from 'node:stream';
import type { LinkClock } from './clock.ts';

/**
 * Lets what was written leave for at most `graceMs`, then destroys the stream; what still arrives is dropped. Settles when
 * the stream is closed, or at the end of the grace for a stream that never says so.
 */
export function endStream(stream: Duplex, clock: LinkClock, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // Stays for good: a write that was refused can report itself after the stream has closed.
    stream.on('error', () => {});
    if (stream.closed) {
      resolve();
      return;
    }
    stream.once('close', resolve);
    if (graceMs === 0 || stream.destroyed || !stream.writable) {
      stream.destroy();
      return;
    }
    stream.resume();
    const cancel = clock.after(graceMs, () => {
      stream.destroy();
      resolve();
    });
    stream.once('close', cancel);
    // The other end of a pair in memory never reports our end when it is destroyed first: nothing unwritten and its end will do.
    const peerEnded = () => setImmediate(() => (stream.writableLength === 0 ? stream.destroy() : undefined));
    if (stream.readableEnded) peerEnded();
    else stream.once('end', peerEnded);
    stream.end(() => stream.destroy());
  });
}

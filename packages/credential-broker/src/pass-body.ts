import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';

/** Passes a body on unread, as it comes; `onTooLarge` is called once more than `maxBytes` have come. */
export function passBody(from: IncomingMessage, to: Writable, maxBytes: number, onTooLarge: () => void): void {
  let bytes = 0;
  from.on('data', (part: Buffer) => {
    bytes += part.length;
    if (bytes > maxBytes) onTooLarge();
  });
  from.pipe(to);
}

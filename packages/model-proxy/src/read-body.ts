import type { IncomingMessage } from 'node:http';
import type { HostRefusal, RouteRefusal } from '@firecrew/model-route';
import type { ModelProxyLimits } from './limits.ts';

/** Bodies that are held now, for all calls of a route. */
export class BodyRoom {
  readonly #max: number;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes room for some bytes; false where there is none. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#max) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

/** A whole body with the room that it takes, or why there is none. */
export type ReadBody =
  | { readonly ok: true; readonly bytes: Buffer; readonly release: () => void }
  | { readonly ok: false; readonly reason: Extract<RouteRefusal, HostRefusal | 'body_too_large' | 'bad_request'> };

/** Reads a body within bounds of bytes and time: each is looked at before anything is held. */
export async function readBody(request: IncomingMessage, room: BodyRoom, limits: ModelProxyLimits): Promise<ReadBody> {
  const parts: Buffer[] = [];
  let bytes = 0;
  const release = () => {
    room.give(bytes);
    bytes = 0;
  };
  const reason = await new Promise<Extract<ReadBody, { ok: false }>['reason'] | undefined>((resolve) => {
    const timer = setTimeout(() => resolve('body_timeout'), limits.bodyMs);
    const settle = (why: Extract<ReadBody, { ok: false }>['reason'] | undefined) => {
      clearTimeout(timer);
      resolve(why);
    };
    request.on('data', (part: Buffer) => {
      if (bytes + part.length > limits.bodyBytes) settle('body_too_large');
      else if (!room.take(part.length)) settle('bodies_busy');
      else {
        bytes += part.length;
        parts.push(part);
        return;
      }
      request.removeAllListeners('data').resume();
    });
    request.once('end', () => settle(undefined));
    request.once('error', () => settle('bad_request'));
    request.once('close', () => settle(request.complete ? undefined : 'bad_request'));
  });
  if (reason === undefined) return { ok: true, bytes: Buffer.concat(parts, bytes), release };
  release();
  return { ok: false, reason };
}

import { Readable } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { type LinkSession, type LinkStream, MAX_HEAD_BYTES } from '@firecrew/link';
import { type HostRequest, type PutEnd, putEndSchema, type Trailer, trailerReplySchema } from '@firecrew/protocol';
import { type ArchiveTrailer, type ByteStream, writeLent } from '@firecrew/workspace';
import type { OutgoingTree, TreeExclusion } from '../port/driver.ts';
import { NO_EXCLUSION, trimExclusion } from '../tree-transfer/select-tree.ts';
import { checkReceived } from '../tree-transfer/trailer.ts';
import { CALL_TIMEOUT_MS, TRANSFER_IDLE_MS, withDeadline } from './deadlines.ts';
import { badReply, expectAccepted, GuestRefusal, readBody } from './read-body.ts';

/** How a tree is put. */
export interface PutOptions {
  /** Files become 0444 or 0555, folders 0555; default false. */
  readonly readOnly?: boolean;
  /** Content bytes the guest accepts; default {@link DEFAULT_PUT_BYTES}. */
  readonly maxBytes?: number;
  /** What becomes of what the folder holds; default: the tree takes its place. */
  readonly onto?: NonNullable<Extract<HostRequest, { t: 'put' }>['onto']>;
  /** Time without progress after which the transfer is given up, in `ms`. */
  readonly idleMs?: number;
}

/** Content bytes of a put where the caller sets no limit. */
export const DEFAULT_PUT_BYTES = 16 * 1024 ** 3;

/** Sends a tar to the guest, where it takes the place of `path` as a whole, unless `onto` says otherwise. A chunk is done with before the next is asked for. Throws `guest_refused`, `transfer_stalled` or a link error. */
export async function putTree(session: LinkSession, path: string, tar: ByteStream, options: PutOptions = {}): Promise<Omit<PutEnd, 'ok'>> {
  const maxBytes = options.maxBytes ?? DEFAULT_PUT_BYTES;
  const { onto, readOnly = false } = options;
  const stream = session.open({ t: 'put', path, readOnly, maxBytes, ...(onto === undefined ? {} : { onto }) } satisfies HostRequest);
  const idleMs = options.idleMs ?? TRANSFER_IDLE_MS;
  try {
    await withDeadline(stream, 'put', CALL_TIMEOUT_MS, () => expectAccepted(stream, 'put'));
  } catch (error) {
    if (tar instanceof Readable) tar.destroy();
    throw error;
  }
  const watch = idleWatch(stream, 'put', idleMs);
  try {
    const sent = writeLent(watch.each(tar), stream).then(() => stream.end());
    const [, end] = await Promise.all([sent, readBody(stream, 'put', putEndSchema)]);
    if (!end.ok) throw new GuestRefusal('put', end);
    // An agent that does not know the way takes the usual one.
    if ((onto === 'over' && end.replaced === undefined) || (onto === 'out' && end.out === undefined))
      throw badReply('put', `no word of how the tree was put ${onto}`);
    const { ok: _ok, ...put } = end;
    return put;
  } catch (error) {
    stream.destroy();
    throw watch.late() ?? error;
  } finally {
    watch.stop();
  }
}

/**
 * Reads a tree of the guest. The archive fails with the link's error when it is cut; only the trailer proves that all came, so ask
 * for it after the end. `id` names the transfer in this VM.
 */
export async function getTree(
  session: LinkSession,
  id: string,
  path: string,
  exclude: TreeExclusion = NO_EXCLUSION,
  options: { readonly idleMs?: number } = {},
): Promise<OutgoingTree> {
  const stream = session.open({ t: 'get', id, path, exclude: fitExclusion(exclude, path) } satisfies HostRequest);
  stream.end();
  await withDeadline(stream, 'get', CALL_TIMEOUT_MS, () => expectAccepted(stream, 'get'));
  let failure: unknown;
  const archive = async (take: (part: Uint8Array) => void): Promise<void> => {
    const watch = idleWatch(stream, 'get', options.idleMs ?? TRANSFER_IDLE_MS);
    try {
      await stream.consume((part) => {
        watch.refresh();
        take(part);
      });
    } catch (error) {
      failure = watch.late() ?? error;
      stream.destroy();
      throw error;
    } finally {
      watch.stop();
    }
  };
  const trailer = async (received: ArchiveTrailer): Promise<Trailer> => {
    if (failure !== undefined) throw failure;
    const said = await readTrailer(session, id);
    checkReceived(path, said, received);
    return said;
  };
  return { archive, trailer };
}

async function readTrailer(session: LinkSession, id: string): Promise<Trailer> {
  const stream = session.open({ t: 'trailer', id } satisfies HostRequest);
  stream.end();
  return withDeadline(stream, 'trailer', CALL_TIMEOUT_MS, async () => {
    await expectAccepted(stream, 'trailer');
    const reply = await readBody(stream, 'trailer', trailerReplySchema);
    if (!reply.ok) throw new GuestRefusal('trailer', reply);
    return reply;
  });
}

/** An exclusion that fits in a head. Leaving less out is always right, so rules are given up before tracked folders. */
function fitExclusion(exclude: TreeExclusion, path: string): TreeExclusion {
  const trimmed = trimExclusion(exclude);
  const room = MAX_HEAD_BYTES - Buffer.byteLength(JSON.stringify(path)) - 1024;
  const fits = (one: TreeExclusion): boolean => Buffer.byteLength(JSON.stringify(one)) <= room;
  return [trimmed, { ...trimmed, ignore: [] }].find(fits) ?? NO_EXCLUSION;
}

interface IdleWatch {
  /** There was progress. */
  readonly refresh: () => void;
  /** The chunks, each of which is progress. */
  readonly each: (chunks: ByteStream) => AsyncGenerator<Uint8Array>;
  readonly late: () => CodedError | undefined;
  readonly stop: () => void;
}

function idleWatch(stream: LinkStream, request: string, idleMs: number): IdleWatch {
  let late: CodedError | undefined;
  const onIdle = (): void => {
    late = new CodedError('transfer_stalled', `The transfer "${request}" made no progress for ${idleMs} ms.`, { id: request });
    stream.reset('stalled');
  };
  const timer = setTimeout(onIdle, idleMs);
  const refresh = (): void => {
    timer.refresh();
  };
  async function* each(chunks: ByteStream): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      refresh();
      yield chunk;
    }
  }
  return { refresh, each, late: () => late, stop: () => clearTimeout(timer) };
}

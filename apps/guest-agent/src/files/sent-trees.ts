import { lstat } from 'node:fs/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';
import type { HostRequest, Trailer } from '@firecrew/protocol';
import { trailerOf, treeSelectionOf } from '@firecrew/vmm';
import { type PackedTree, packTree, writeLent } from '@firecrew/workspace';

type GetRequest = Extract<HostRequest, { t: 'get' }>;

/** Transfers whose trailers are kept; the oldest goes first. */
export const MAX_TRAILERS = 64;
/** Transfers at a time. */
export const MAX_TRANSFERS = 8;

/** Trees on their way to the host, and the trailers of those that were sent. */
export class SentTrees {
  readonly #trailers = new Map<string, Promise<Trailer>>();
  #sending = 0;

  /** Opens a tree. Throws `path_missing`, `exclusion_unknown`, `transfer_id_taken`, `too_many_transfers`; then nothing is sent. */
  async open(request: GetRequest): Promise<PackedTree> {
    const { id, path } = request;
    if (this.#trailers.has(id)) throw new CodedError('transfer_id_taken', `the transfer ${id} was made before`, { id });
    if (this.#sending >= MAX_TRANSFERS) throw new CodedError('too_many_transfers', `${MAX_TRANSFERS} transfers are under way`, { id });
    // A link in the place of the folder would have another folder packed as this one.
    const stats = await lstat(path).catch((error: unknown) => {
      throw new CodedError('path_missing', `${JSON.stringify(path.slice(0, 200))} cannot be read (${codeOf(error) ?? 'error'})`, { id });
    });
    if (!stats.isDirectory()) throw new CodedError('path_missing', `${JSON.stringify(path.slice(0, 200))} is no folder`, { id });
    const tree = packTree(path, treeSelectionOf(request.exclude));
    const trailer = tree.done.then((report) => trailerOf(path, report));
    trailer.catch(() => undefined);
    this.#trailers.set(id, trailer);
    const oldest = this.#trailers.keys().next().value;
    if (this.#trailers.size > MAX_TRAILERS && oldest !== undefined) this.#trailers.delete(oldest);
    return tree;
  }

  /** Sends an opened tree. A pack that fails resets the stream: it never looks like an end. */
  async send(tree: PackedTree, stream: LinkStream): Promise<void> {
    this.#sending += 1;
    try {
      await writeLent(tree.chunks, stream);
      stream.end();
    } catch (error) {
      stream.destroy(error instanceof Error ? error : undefined);
    } finally {
      this.#sending -= 1;
    }
  }

  /** What was sent under this id. Throws `transfer_unknown`, or `pack_failed` with the reason. */
  async trailer(id: string): Promise<Trailer> {
    const trailer = this.#trailers.get(id);
    if (trailer === undefined) throw new CodedError('transfer_unknown', `there is no transfer ${id}`, { id });
    try {
      return await trailer;
    } catch (error) {
      throw new CodedError('pack_failed', `the transfer ${id} has no whole archive: ${messageOf(error)}`, { id, cause: error });
    }
  }
}

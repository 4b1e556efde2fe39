import { CodedError } from '@firecrew/base';

/** Transfers of files that one node may have under way; it needs one. */
export const MAX_IMAGE_TRANSFERS_PER_NODE = 4;
/** Transfers of files that a server has under way for all its nodes. */
export const MAX_IMAGE_TRANSFERS = 256;

/** How many transfers of files of images each node has under way. */
export class ImageTransfers {
  readonly #open = new Map<string, number>();
  #all = 0;

  /** Counts one more; the function that comes back counts it out, once. Throws `image_transfers_full`. */
  begin(nodeId: string): () => void {
    const now = this.#open.get(nodeId) ?? 0;
    if (now >= MAX_IMAGE_TRANSFERS_PER_NODE || this.#all >= MAX_IMAGE_TRANSFERS)
      throw new CodedError('image_transfers_full', `there are ${now} transfers of images to node ${nodeId}, and ${this.#all} in all`, {
        id: nodeId,
        action: 'Nothing: the node asks again.',
      });
    this.#open.set(nodeId, now + 1);
    this.#all += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#all -= 1;
      const left = (this.#open.get(nodeId) ?? 1) - 1;
      if (left === 0) this.#open.delete(nodeId);
      else this.#open.set(nodeId, left);
    };
  }
}

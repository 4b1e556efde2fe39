/** Called once when the bytes of one write have left, or with the error that kept them. */
export type WriteDone = (error?: Error | null) => void;

/** Bytes of at most one frame; `last` when they end the write. */
export interface OutboxTake {
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  readonly last: boolean;
}

/** The one write of a stream that is under way: Node hands over the next when this one is done. */
export class Outbox {
  #parts: readonly Uint8Array[] = [];
  #index = 0;
  #offset = 0;
  #bytes = 0;
  #done: WriteDone | undefined;

  /** Bytes that have not been handed to the underlying stream. */
  get bytes(): number {
    return this.#bytes;
  }

  put(parts: readonly Uint8Array[], done: WriteDone): void {
    this.#parts = parts;
    this.#index = 0;
    this.#offset = 0;
    this.#bytes = parts.reduce((sum, part) => sum + part.length, 0);
    this.#done = done;
  }

  take(max: number): OutboxTake {
    const parts: Uint8Array[] = [];
    let room = Math.min(max, this.#bytes);
    const bytes = room;
    while (room > 0) {
      const part = this.#parts[this.#index] ?? new Uint8Array(0);
      const end = Math.min(part.length, this.#offset + room);
      if (end > this.#offset) parts.push(this.#offset === 0 && end === part.length ? part : part.subarray(this.#offset, end));
      room -= end - this.#offset;
      this.#offset = end;
      if (end === part.length) {
        this.#index += 1;
        this.#offset = 0;
      }
    }
    this.#bytes -= bytes;
    return { parts, bytes, last: this.#bytes === 0 };
  }

  /** Ends the pending write, with the error that kept its bytes or without. Does nothing the second time. */
  settle(error?: Error): void {
    const done = this.#done;
    this.#done = undefined;
    this.#parts = [];
    this.#bytes = 0;
    if (error === undefined) done?.();
    else done?.(error);
  }
}

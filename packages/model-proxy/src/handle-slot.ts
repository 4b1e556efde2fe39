/** The handle of a turn as it is now: it may come later than the first request, and a node agent that started anew gives another one. */
export class HandleSlot {
  #now: string | undefined;
  #waiting: (() => void)[] = [];

  set(handle: string): void {
    this.#now = handle;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** The newest handle, or undefined when none came within `waitMs`. */
  async take(waitMs: number): Promise<string | undefined> {
    if (this.#now === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return this.#now;
  }
}

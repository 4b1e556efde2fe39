/** A value that may come later than the first who asks for it, and be replaced at any time. */
export class LateValue<Value> {
  #now: Value | undefined;
  readonly #waiting = new Set<() => void>();

  set(value: Value): void {
    this.#now = value;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** The newest value, or undefined when none came within `waitMs`. */
  async take(waitMs: number): Promise<Value | undefined> {
    if (this.#now === undefined) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, waitMs);
        this.#waiting.add(wake);
      });
    }
    return this.#now;
  }
}

import { type FSWatcher, watch } from 'node:fs';

/** Wakes one reader when something in a folder changes. Where the system has no watch left to give, time alone wakes it. */
export class FolderWatch {
  #watcher: FSWatcher | undefined;
  #changed = false;
  #wake: (() => void) | undefined;

  constructor(folder: string) {
    try {
      this.#watcher = watch(folder, () => this.#onChange());
      this.#watcher.on('error', () => this.close());
    } catch {
      // Found out later by looking.
    }
  }

  /** Resolves at the first change since the last call, at the latest after `maxMs`. */
  async next(maxMs: number): Promise<void> {
    if (!this.#changed) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, maxMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = undefined;
    this.#changed = false;
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#wake?.();
  }

  #onChange(): void {
    this.#changed = true;
    this.#wake?.();
  }
}

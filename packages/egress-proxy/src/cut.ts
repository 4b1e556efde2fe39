/** The end of one connection from outside, told once to whoever waits in it. A tunnel takes part in it five times, which an AbortSignal makes dear. */
export class Cut {
  private readonly waiting = new Set<() => void>();
  private made = false;

  get isMade(): boolean {
    return this.made;
  }

  /** Cuts; the second time changes nothing. */
  make(): void {
    if (this.made) return;
    this.made = true;
    for (const tell of this.waiting) tell();
    this.waiting.clear();
  }

  /** Calls `tell` when it is made, at once where it is; `leave` takes that back. */
  join(tell: () => void): void {
    if (this.made) tell();
    else this.waiting.add(tell);
  }

  leave(tell: () => void): void {
    this.waiting.delete(tell);
  }
}

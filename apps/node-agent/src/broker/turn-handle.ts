import type { Handles } from './broker-desk.ts';

/** The handle of one turn, as its keeper has it: given to the shim once, kept up with the lease, taken away for good. */
export class TurnHandle {
  readonly #handles: Handles;
  readonly #route: string;
  #handle: string | undefined;
  #isGiven = false;
  #isRevoked = false;

  constructor(handles: Handles, route: string) {
    this.#handles = handles;
    this.#route = route;
  }

  /** Gives it to the shim by `pass`, where that was not done yet; a shim that does not answer now is asked again at the next call. */
  async give(validUntilMs: number, pass: (handle: string) => Promise<unknown>): Promise<void> {
    if (this.#isRevoked || this.#isGiven) return;
    this.#handle ??= this.#handles.open(this.#route, validUntilMs);
    if (this.#handle === undefined) return;
    this.#isGiven = await pass(this.#handle).then(
      () => true,
      () => false,
    );
  }

  renew(validUntilMs: number): void {
    if (this.#handle !== undefined) this.#handles.renew(this.#handle, validUntilMs);
  }

  /** Ends its calls at once; there is no other one for this turn. */
  revoke(): void {
    this.#isRevoked = true;
    if (this.#handle !== undefined) this.#handles.close(this.#handle);
  }
}

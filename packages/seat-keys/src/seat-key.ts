/** A seat's secret. It prints as a fixed word in text, JSON and inspection; only {@link SeatKey.reveal} gives it out. */
export class SeatKey {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The secret itself, for the one place that sends or stores it. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[seat key]';
  }

  toJSON(): string {
    return '[seat key]';
  }
}

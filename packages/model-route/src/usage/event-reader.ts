/** Longest data of one event that is kept, in characters. */
export const EVENT_MAX_CHARACTERS = 16 * 1024 * 1024;

/** Reads the data of server-sent events from chunks of any size: <https://html.spec.whatwg.org/multipage/server-sent-events.html>. */
export class EventReader {
  readonly #decoder = new TextDecoder('utf-8');
  readonly #take: (data: string) => void;
  readonly #onOverflow: () => void;
  #held = '';
  #data: string[] = [];
  #characters = 0;

  /** `take` gets the data of each event; `onOverflow` is called for an event that is too long, which is then not given. */
  constructor(take: (data: string) => void, onOverflow: () => void) {
    this.#take = take;
    this.#onOverflow = onOverflow;
  }

  push(bytes: Uint8Array): void {
    this.#add(this.#decoder.decode(bytes, { stream: true }));
  }

  /** Nothing more comes. What is not ended by an empty line is taken all the same. */
  end(): void {
    this.#add(this.#decoder.decode());
    if (this.#held !== '') this.#line(this.#held);
    this.#held = '';
    this.#line('');
  }

  #add(text: string): void {
    const lines = (this.#held + text).split(/\r\n|\n|\r(?!$)/);
    this.#held = lines.pop() ?? '';
    for (const line of lines) this.#line(line);
    if (this.#held.length > EVENT_MAX_CHARACTERS) this.#overflow();
  }

  #line(line: string): void {
    if (line === '') {
      const data = this.#data.join('\n');
      this.#data = [];
      this.#characters = 0;
      if (data !== '') this.#take(data);
    } else if (line.startsWith('data:')) {
      const part = line.slice(line.startsWith('data: ') ? 6 : 5);
      this.#data.push(part);
      this.#characters += part.length;
      if (this.#characters > EVENT_MAX_CHARACTERS) this.#overflow();
    }
  }

  #overflow(): void {
    this.#held = '';
    this.#data = [];
    this.#characters = 0;
    this.#onOverflow();
  }
}

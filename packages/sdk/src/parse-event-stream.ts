import { FirecrewApiError } from './api-error.ts';

/** One message of an event stream. */
export interface StreamMessage {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** Characters of one message that are kept before the stream is given up. */
export const MAX_STREAM_MESSAGE_CHARS = 16 * 1024 * 1024;

function tooLarge(): FirecrewApiError {
  const message = `a message of the event stream exceeds ${MAX_STREAM_MESSAGE_CHARS} characters`;
  return new FirecrewApiError({ code: 'bad_reply', message, status: 200 });
}

/**
 * Reads `text/event-stream` piece by piece, cut anywhere. Comments are dropped; a message without data is none;
 * one that is cut by the end of the stream is dropped, as the format says.
 */
export class EventStreamParser {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #id: string | undefined;
  #event = '';
  #data: string[] = [];
  #size = 0;

  /** The messages that `bytes` completes. Throws `bad_reply` past {@link MAX_STREAM_MESSAGE_CHARS}. */
  push(bytes: Uint8Array): StreamMessage[] {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    const messages: StreamMessage[] = [];
    let from = 0;
    for (;;) {
      const end = lineEnd(text, from);
      if (end === undefined) break;
      const message = this.#line(text.slice(from, end.at));
      if (message !== undefined) messages.push(message);
      from = end.next;
    }
    this.#rest = text.slice(from);
    if (this.#size + this.#rest.length > MAX_STREAM_MESSAGE_CHARS) throw tooLarge();
    return messages;
  }

  #line(line: string): StreamMessage | undefined {
    if (line === '') return this.#dispatch();
    this.#size += line.length;
    if (this.#size > MAX_STREAM_MESSAGE_CHARS) throw tooLarge();
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    return undefined;
  }

  #dispatch(): StreamMessage | undefined {
    const message = { id: this.#id, event: this.#event === '' ? 'message' : this.#event, data: this.#data.join('\n') };
    const empty = this.#data.length === 0;
    this.#event = '';
    this.#data = [];
    this.#size = 0;
    // `done` carries no id, and the last id stays what it was: a reconnect resumes there.
    return empty ? undefined : message;
  }
}

/** Where the line that begins at `from` ends: at LF, CR LF or CR. A CR at the very end waits for what follows it. */
function lineEnd(text: string, from: number): { at: number; next: number } | undefined {
  const lf = text.indexOf('\n', from);
  const cr = text.indexOf('\r', from);
  if (cr !== -1 && (lf === -1 || cr < lf)) {
    if (cr === text.length - 1) return undefined;
    return { at: cr, next: text[cr + 1] === '\n' ? cr + 2 : cr + 1 };
  }
  return lf === -1 ? undefined : { at: lf, next: lf + 1 };
}

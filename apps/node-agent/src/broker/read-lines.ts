import type { Readable } from 'node:stream';

/** The lines of a stream; what follows the last end of a line is none. `tooLong` makes what is thrown where a line has more than `maxBytes` characters. */
export async function* readLines(stream: Readable, maxBytes: number, tooLong: () => Error): AsyncGenerator<string> {
  let held = '';
  stream.setEncoding('utf8');
  for await (const part of stream) {
    held += part as string;
    const lines = held.split('\n');
    held = lines.pop() ?? '';
    yield* lines;
    if (held.length > maxBytes) throw tooLong();
  }
}

import type { Readable } from 'node:stream';
import type * as z from 'zod';

/** How the messages of one side are read. */
export interface MessageRules<Message> {
  readonly schema: z.ZodType<Message>;
  /** Characters of one message. */
  readonly maxChars: number;
  /** Makes what is thrown where a line is no message. `why` holds nothing of the line: it may hold a credential. */
  readonly fault: (why: string) => Error;
}

/** The messages of a stream, one JSON value in a line; what follows the last end of a line is none. */
export async function* readMessages<Message>(stream: Readable, rules: MessageRules<Message>): AsyncGenerator<Message> {
  const { maxChars, fault } = rules;
  let held = '';
  stream.setEncoding('utf8');
  for await (const part of stream) {
    held += part as string;
    const lines = held.split('\n');
    held = lines.pop() ?? '';
    for (const line of [...lines, held]) if (line.length > maxChars) throw fault(`it has more than ${maxChars} characters`);
    for (const line of lines) yield readMessage(line, rules);
  }
}

function readMessage<Message>(line: string, { schema, fault }: MessageRules<Message>): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw fault('no JSON');
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw fault(parsed.error.issues.map(({ path, code }) => `${path.map(String).join('.')} (${code})`).join(', '));
}

import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { readMessages } from '../../src/broker/read-messages.ts';

const rules = { schema: z.strictObject({ n: z.int() }), maxChars: 12, fault: (why: string) => new Error(why) };

/** What comes of these pieces: the messages, and why no more of them came. */
async function read(...parts: readonly string[]): Promise<readonly [number[], string | undefined]> {
  const told: number[] = [];
  try {
    for await (const { n } of readMessages(Readable.from(parts.map((part) => Buffer.from(part))), rules)) told.push(n);
    return [told, undefined];
  } catch (error) {
    return [told, (error as Error).message];
  }
}

describe('messages between a node agent and its broker', () => {
  it.each([
    [['{"n":1}\n{"n":2}\n'], [1, 2], undefined],
    [['{"n"', ':1}', '\n{"n":2}'], [1], undefined],
    [['{"n":1}\n{"n":2\n'], [1], 'no JSON'],
    [['{"n":"one"}\n'], [], 'n (invalid_type)'],
    [['{"n":1,"m":2}\n'], [], 'it has more than 12 characters'],
    [['{"n":1}\n          ', '          '], [1], 'it has more than 12 characters'],
  ])('%j are %j, then %s', async (parts, told, why) => {
    expect(await read(...parts)).toEqual([told, why]);
  });
});

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import * as z from 'zod';

/** How much of the end of a log is searched, in bytes. */
const TAIL_BYTES = 64 * 1024;
const FATAL = 60;

const fatalSchema = z.object({
  level: z.literal(FATAL),
  pid: z.int(),
  code: z.string().optional(),
  msg: z.string(),
  action: z.string().optional(),
});

/** Why a process could not go on, as its log says. */
export interface LastWords {
  readonly code: string;
  readonly message: string;
  readonly action: string | null;
}

/** The fatal line that process `pid` wrote last to its log; undefined where it wrote none, as when it was killed. */
export function readLastWords(logFile: string, pid: number): LastWords | undefined {
  for (const line of readTail(logFile).split('\n').reverse()) {
    if (!line.startsWith('{')) continue;
    const found = fatalSchema.safeParse(parse(line));
    if (!found.success || found.data.pid !== pid) continue;
    const { code, msg, action } = found.data;
    return { code: code ?? 'process_ended', message: msg, action: action ?? `Read ${logFile}.` };
  }
  return undefined;
}

function readTail(file: string): string {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch {
    return '';
  }
  try {
    const { size } = fstatSync(handle);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    return bytes.toString('utf8', 0, readSync(handle, bytes, 0, bytes.length, size - bytes.length));
  } finally {
    closeSync(handle);
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const PIECE_BYTES = 16 * 1024 * 1024;
/** Longest text that is searched for. */
const OVERLAP_BYTES = 1_024;

/** Reads what a process can write of its memory, in pieces that overlap; needs the right to trace it. */
export function* readMemory(pid: number): Generator<Buffer> {
  const areas = readFileSync(`/proc/${pid}/maps`, 'latin1')
    .split('\n')
    .flatMap((line) => {
      const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
      return match === null ? [] : [[BigInt(`0x${match[1]}`), BigInt(`0x${match[2]}`)] as const];
    });
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const piece = Buffer.alloc(PIECE_BYTES);
  try {
    for (const [from, to] of areas) {
      for (let at = from; at < to; at += BigInt(PIECE_BYTES - OVERLAP_BYTES)) {
        const length = Number(to - at < PIECE_BYTES ? to - at : BigInt(PIECE_BYTES));
        const read = readSome(memory, piece, length, at);
        if (read > 0) yield piece.subarray(0, read);
      }
    }
  } finally {
    closeSync(memory);
  }
}

/** An area may go while it is read, and guard pages cannot be. */
function readSome(memory: number, piece: Buffer, length: number, at: bigint): number {
  try {
    return readSync(memory, piece, 0, length, at);
  } catch {
    return 0;
  }
}

/** How often a process holds a text in its memory, as bytes of ASCII or as UTF-16. */
export function countInMemory(pid: number, text: string): number {
  let count = 0;
  for (const piece of readMemory(pid))
    for (const form of [Buffer.from(text), Buffer.from(text, 'utf16le')])
      for (let at = piece.indexOf(form); at >= 0; at = piece.indexOf(form, at + 1)) count += 1;
  return count;
}

/** The first group of every match of a pattern in the memory of a process. */
export function findInMemory(pid: number, pattern: RegExp): Set<string> {
  const found = new Set<string>();
  for (const piece of readMemory(pid))
    for (const [, text] of piece.toString('latin1').matchAll(pattern)) if (text !== undefined) found.add(text);
  return found;
}

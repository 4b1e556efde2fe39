import { malformedElf, readElf } from './read-elf.ts';

/**
 * A copy without what only debuggers and linkers read: everything behind the last segment, and the table of sections. What is loaded stays as
 * it is, so the program runs the same. Throws `elf_malformed`.
 */
export function stripElf(bytes: Buffer): Buffer {
  const { segments } = readElf(bytes);
  if (segments.length === 0) throw malformedElf('nothing of it is loaded');
  const headersEnd = Math.max(...segments.map(({ headerOffset }) => headerOffset)) + 56;
  const end = Math.max(headersEnd, ...segments.map(({ offset, fileBytes }) => offset + fileBytes));
  const stripped = Buffer.from(bytes.subarray(0, end));
  // Offset of the table of sections, their number, and the one that holds their names.
  stripped.writeBigUInt64LE(0n, 40);
  stripped.writeUInt16LE(0, 60);
  stripped.writeUInt16LE(0, 62);
  return stripped;
}

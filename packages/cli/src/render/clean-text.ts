// Control characters of C0 and C1, DEL, and marks that turn the direction of text: with them a guest could rewrite what a person sees.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
// Whole escape sequences go first, so that nothing of them is left as text: CSI, OSC and others up to their end.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[ -/]*[0-~])/g;

/** Characters of one line that are shown. */
export const LINE_MAX_CHARS = 2_000;

/** Text from a guest, a server or a repository as it may be shown on a terminal: one line, no control characters, bounded. */
export function cleanLine(text: string, maxChars: number = LINE_MAX_CHARS): string {
  const plain = text
    .replace(ESCAPES, '')
    .replace(/[\r\n\t]+/g, ' ')
    .replace(CONTROL, '');
  return plain.length <= maxChars ? plain : `${plain.slice(0, maxChars)}…`;
}

/** The same for text of several lines; a carriage return inside a line keeps what follows it, as a terminal would show. */
export function cleanLines(text: string, maxLines: number): string[] {
  if (text.trim() === '') return [];
  const lines = text.replace(/\s+$/, '').split('\n');
  const kept = lines.slice(-maxLines).map((line) => cleanLine(afterReturn(line)));
  return lines.length > maxLines ? [`… ${lines.length - maxLines} lines before`, ...kept] : kept;
}

/** What a terminal shows of a line that was written over: the part after its last carriage return. */
export function afterReturn(line: string): string {
  const trimmed = line.replace(/\r+$/, '');
  return trimmed.slice(trimmed.lastIndexOf('\r') + 1);
}

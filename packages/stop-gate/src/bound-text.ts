/** The last `limit` bytes of UTF-8 text, cut at a character boundary, without control characters other than tab and newline. */
export function tailOfText(text: string | Uint8Array, limit: number): string {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  let start = Math.max(0, bytes.length - limit);
  while (start > 0 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  const clean = withoutControls(new TextDecoder().decode(bytes.subarray(start)));
  return withinBytes(clean, limit);
}

/** The first `limit` bytes of text, cut at a character boundary and then marked with "...". */
export function headOfText(text: string, limit: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return text;
  let end = limit;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${new TextDecoder().decode(bytes.subarray(0, end))}...`;
}

function withoutControls(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '');
}

/** A byte that is no UTF-8 is decoded to three bytes, so the text can have grown past the limit. */
function withinBytes(text: string, limit: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return text;
  let start = bytes.length - limit;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
  return new TextDecoder().decode(bytes.subarray(start));
}

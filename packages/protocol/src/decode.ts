import type * as z from 'zod';

/** What became of a message: decoded (unknown fields stripped and counted), or refused with a code. */
export type Decoded<T> =
  | { readonly ok: true; readonly value: T; readonly unknownFields: number }
  | { readonly ok: false; readonly code: 'not_json' | 'unknown_message' | 'invalid_message'; readonly message: string };

/** Characters of a refused message that may be logged. */
export const FRAME_HEAD_CHARS = 160;

/**
 * Decodes one message of a wire. `types` are the message types this generation knows, read from the field `t`:
 * another type is `unknown_message`, a known one of the wrong shape is `invalid_message`.
 */
export function decodeMessage<T>(schema: z.ZodType<T>, types: readonly string[], input: unknown): Decoded<T> {
  const type = typeof input === 'object' && input !== null && 't' in input ? input.t : undefined;
  if (typeof type !== 'string' || !types.includes(type)) {
    return { ok: false, code: 'unknown_message', message: `unknown message type ${JSON.stringify(type)?.slice(0, 80) ?? 'none'}` };
  }
  return decodeValue(schema, input);
}

/** Decodes one value: refused as `invalid_message` with every path that does not fit. */
export function decodeValue<T>(schema: z.ZodType<T>, input: unknown): Decoded<T> {
  const parsed = schema.safeParse(input);
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => `${issue.path.map(String).join('.') || '(top)'}: ${issue.message}`);
    return { ok: false, code: 'invalid_message', message: where.join('; ').slice(0, 2000) };
  }
  return { ok: true, value: parsed.data, unknownFields: countStripped(input, parsed.data) };
}

/** Parses JSON text without throwing. */
export function parseJson(text: string): { ok: true; value: unknown } | { ok: false; code: 'not_json'; message: string } {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    return { ok: false, code: 'not_json', message: `not JSON: ${JSON.stringify(text.slice(0, FRAME_HEAD_CHARS))}` };
  }
}

/** How many fields of `input`, at any depth, are not in `output`. */
export function countStripped(input: unknown, output: unknown): number {
  if (Array.isArray(input) && Array.isArray(output)) {
    return input.reduce<number>((sum, item, index) => sum + countStripped(item, output[index]), 0);
  }
  if (typeof input !== 'object' || input === null || typeof output !== 'object' || output === null) return 0;
  const kept = new Map<string, unknown>(Object.entries(output));
  let count = 0;
  for (const [key, value] of Object.entries(input)) {
    if (kept.has(key)) count += countStripped(value, kept.get(key));
    else if (value !== undefined) count += 1;
  }
  return count;
}

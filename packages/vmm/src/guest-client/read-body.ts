import { CodedError } from '@firecrew/base';
import type { LinkStream } from '@firecrew/link';
import { decodeValue, parseJson, refusalSchema, replySchema } from '@firecrew/protocol';

type Schema<Value> = Parameters<typeof decodeValue<Value>>[0];

/** Bytes of one JSON body of the guest, at most. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Error of a guest that answered what the wire does not allow. */
export function badReply(request: string, message: string): CodedError {
  return new CodedError('guest_reply_invalid', `The guest answered "${request}" with something else: ${message.slice(0, 300)}`, {
    id: request,
    action: 'Treat the guest as lost; its agent is broken or replaced.',
  });
}

/** Error of a guest that refused; its own code and text are kept as data. */
export class GuestRefusal extends CodedError {
  readonly guestCode: string;
  readonly guestMessage: string;

  constructor(request: string, refusal: { readonly code: string; readonly message: string }) {
    super('guest_refused', `The guest refused "${request}" (${clean(refusal.code)}): ${clean(refusal.message)}`, { id: request });
    this.name = 'GuestRefusal';
    this.guestCode = clean(refusal.code);
    this.guestMessage = clean(refusal.message);
  }
}

/** Waits for the head that takes the request. Throws `guest_refused`, `guest_reply_invalid` or the stream's error. */
export async function expectAccepted(stream: LinkStream, request: string): Promise<void> {
  const head = await expectHead(stream, request, replySchema);
  if (!head.ok) throw new GuestRefusal(request, head);
}

/** Waits for a head of this shape. */
export async function expectHead<Value>(stream: LinkStream, request: string, schema: Schema<Value>): Promise<Value> {
  return decodeReply(await stream.peerHead, request, schema);
}

/** Reads the JSON body of an accepted request to its end, within {@link MAX_BODY_BYTES}. Throws like {@link expectAccepted}. */
export async function readBody<Value>(stream: LinkStream, request: string, schema: Schema<Value>): Promise<Value> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream) {
    if (!Buffer.isBuffer(part)) continue;
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw badReply(request, `a body of more than ${MAX_BODY_BYTES} bytes`);
    parts.push(part);
  }
  const parsed = parseJson(Buffer.concat(parts).toString('utf8'));
  if (!parsed.ok) throw badReply(request, bytes === 0 ? 'an empty body' : 'a body that is not JSON');
  return decodeReply(parsed.value, request, schema);
}

function decodeReply<Value>(value: unknown, request: string, schema: Schema<Value>): Value {
  const decoded = decodeValue(schema, value);
  if (!decoded.ok) {
    const refused = decodeValue(refusalSchema, value);
    if (refused.ok) throw new GuestRefusal(request, refused.value);
    throw badReply(request, decoded.message);
  }
  return decoded.value;
}

/** A guest's text as it may stand in a log line. */
function clean(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '?').slice(0, 1000);
}

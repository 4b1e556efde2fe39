import { CodedError } from '@firecrew/base';
import { MAX_HEAD_BYTES } from './limits.ts';
import { ProtocolViolation } from './reasons.ts';

/** A head as UTF-8 JSON. Throws `bad_head` for a value without a JSON form, `head_too_large` above `MAX_HEAD_BYTES`. */
export function encodeHead(head: unknown): Uint8Array {
  const text: string | undefined = JSON.stringify(head);
  if (text === undefined) throw new CodedError('bad_head', 'A stream head has no JSON form.');
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length > MAX_HEAD_BYTES) {
    throw new CodedError('head_too_large', `A stream head of ${bytes.length} bytes exceeds ${MAX_HEAD_BYTES}.`, {
      action: 'Send the long part as bytes of the stream.',
    });
  }
  return bytes;
}

/** The JSON value of a head. Throws the violation `bad_head` for bytes that are not UTF-8 or not JSON. */
export function decodeHead(bytes: Uint8Array): unknown {
  try {
    const head: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return head;
  } catch {
    throw new ProtocolViolation('bad_head', `The peer sent a stream head of ${bytes.length} bytes that is not UTF-8 JSON.`);
  }
}

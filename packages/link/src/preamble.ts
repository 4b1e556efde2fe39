import { SECRET_BYTES } from './limits.ts';
import type { RefusalReason } from './reasons.ts';

/** First bytes of a preamble. No part of it repeats its beginning, and its first byte is no frame type. */
export const PREAMBLE_MAGIC: Uint8Array = Uint8Array.of(0xff, 0x46, 0x43, 0x4c, 0x49, 0x4e, 0x4b, 0x31);
/** First bytes of the answer to a preamble. */
export const ANSWER_MAGIC: Uint8Array = Uint8Array.of(0xff, 0x46, 0x43, 0x4c, 0x4f, 0x4b, 0x41, 0x31);

export const MAGIC_BYTES = 8;
export const EPOCH_BYTES = 8;
/** Magic, epoch, generation u32, secret. */
export const PREAMBLE_BYTES = MAGIC_BYTES + EPOCH_BYTES + 4 + SECRET_BYTES;
/** Magic, epoch of the preamble it answers, generation u32, verdict u8. */
export const ANSWER_BYTES = MAGIC_BYTES + EPOCH_BYTES + 4 + 1;

export interface Preamble {
  readonly epoch: Uint8Array;
  readonly generation: number;
  readonly secret: Uint8Array;
}

/** Verdicts by their byte. */
const VERDICTS = ['accepted', 'wrong_secret', 'generation_mismatch', 'refused'] as const;
export type AnswerVerdict = (typeof VERDICTS)[number];

export interface Answer {
  readonly epoch: Uint8Array;
  readonly generation: number;
  readonly verdict: AnswerVerdict;
}

/** The verdict that travels for a refusal. */
export function verdictOf(reason: RefusalReason): AnswerVerdict {
  return reason === 'wrong_secret' || reason === 'generation_mismatch' ? reason : 'refused';
}

/** The bytes of a preamble. */
export function encodePreamble(preamble: Preamble): Uint8Array {
  const bytes = Buffer.alloc(PREAMBLE_BYTES);
  bytes.set(PREAMBLE_MAGIC, 0);
  bytes.set(preamble.epoch, MAGIC_BYTES);
  bytes.writeUInt32BE(preamble.generation, MAGIC_BYTES + EPOCH_BYTES);
  bytes.set(preamble.secret, MAGIC_BYTES + EPOCH_BYTES + 4);
  return bytes;
}

/** Reads the `PREAMBLE_BYTES` that begin with `PREAMBLE_MAGIC`. */
export function decodePreamble(bytes: Uint8Array): Preamble {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    epoch: new Uint8Array(bytes.subarray(MAGIC_BYTES, MAGIC_BYTES + EPOCH_BYTES)),
    generation: view.getUint32(MAGIC_BYTES + EPOCH_BYTES),
    secret: new Uint8Array(bytes.subarray(MAGIC_BYTES + EPOCH_BYTES + 4, PREAMBLE_BYTES)),
  };
}

/** The bytes of an answer. */
export function encodeAnswer(answer: Answer): Uint8Array {
  const bytes = Buffer.alloc(ANSWER_BYTES);
  bytes.set(ANSWER_MAGIC, 0);
  bytes.set(answer.epoch, MAGIC_BYTES);
  bytes.writeUInt32BE(answer.generation, MAGIC_BYTES + EPOCH_BYTES);
  bytes[ANSWER_BYTES - 1] = VERDICTS.indexOf(answer.verdict);
  return bytes;
}

/** Reads the `ANSWER_BYTES` that begin with `ANSWER_MAGIC`; undefined for an unknown verdict. */
export function decodeAnswer(bytes: Uint8Array): Answer | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const verdict = VERDICTS[view.getUint8(ANSWER_BYTES - 1)];
  if (verdict === undefined) return undefined;
  return {
    epoch: new Uint8Array(bytes.subarray(MAGIC_BYTES, MAGIC_BYTES + EPOCH_BYTES)),
    generation: view.getUint32(MAGIC_BYTES + EPOCH_BYTES),
    verdict,
  };
}

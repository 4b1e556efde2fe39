import { MAX_BODY_BYTES } from '../guest-client/read-body.ts';

/** A proper record of an exec that succeeded. */
export const HONEST_END = { kind: 'exited', exitCode: 0, signal: null, outputBytes: 0, droppedBytes: 0, survivors: 0 };

const record = (end: object): string => JSON.stringify({ ok: true, end: { ...HONEST_END, ...end } });

/** Answers to "how did it end" that may not pass for success. */
export const LYING_RECORDS: readonly { readonly what: string; readonly body: string | Buffer }[] = [
  { what: 'no record', body: '' },
  { what: 'a record that is cut', body: record({}).slice(0, -5) },
  { what: 'an exit without a code', body: record({ exitCode: null }) },
  { what: 'an exit by signal with code 0', body: record({ kind: 'signalled', signal: 'SIGKILL' }) },
  { what: 'a timeout with a code', body: record({ kind: 'timed_out' }) },
  { what: 'a code of 256', body: record({ exitCode: 256 }) },
  { what: 'an endless record', body: Buffer.alloc(MAX_BODY_BYTES + 1, ' ') },
];

/** What a server answered to a request for bytes of a file, before its body is read. */
export interface FileReply {
  readonly status: number;
  /** Values of the headers; null where there is none. */
  readonly contentLength: string | null;
  readonly contentRange: string | null;
  readonly contentEncoding: string | null;
}

/** What was asked for, in bytes. */
export interface AskedRange {
  readonly from: number;
  readonly sizeBytes: number;
}

/** Whether the body may be taken and where its first byte belongs, or why not. */
export type ReplyVerdict =
  | { readonly verdict: 'take'; readonly from: number }
  | { readonly verdict: 'refuse'; readonly code: ReplyFault; readonly detail: string };

/** Why a body is not read. */
export type ReplyFault = 'image_redirected' | 'image_not_offered' | 'image_answer_wrong' | 'image_length_wrong' | 'image_transfer_broken';

const NUMBER = /^(0|[1-9]\d{0,15})$/;
const RANGE = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16})$/;

/**
 * Judges the head of an answer. A part has to be exactly the one that was asked for; the whole file is taken from its beginning, also where a
 * part was wanted, because something in between may know no parts. No redirect is followed: a server names no other one.
 */
export function judgeReply(reply: FileReply, { from, sizeBytes }: AskedRange): ReplyVerdict {
  const { status } = reply;
  const refuse = (code: ReplyFault, detail: string): ReplyVerdict => ({ verdict: 'refuse', code, detail });
  if (status >= 300 && status < 400) return refuse('image_redirected', `it answered with a redirect, status ${status}`);
  if (status === 404) return refuse('image_not_offered', 'it does not have it');
  if (status >= 500 || status === 401 || status === 429) return refuse('image_transfer_broken', `it answered with status ${status}`);
  if (status !== 200 && status !== 206) return refuse('image_answer_wrong', `it answered with status ${status}`);
  const { contentEncoding } = reply;
  if (contentEncoding !== null && contentEncoding !== 'identity') return refuse('image_answer_wrong', 'its answer is packed');
  const start = status === 206 ? from : 0;
  if (status === 206 && !isRange(reply.contentRange, from, sizeBytes))
    return refuse('image_length_wrong', `it sends the part ${JSON.stringify(reply.contentRange)}`);
  if (reply.contentLength === null || !NUMBER.test(reply.contentLength) || Number(reply.contentLength) !== sizeBytes - start)
    return refuse('image_length_wrong', `it says ${JSON.stringify(reply.contentLength)} bytes, and ${sizeBytes - start} are wanted`);
  return { verdict: 'take', from: start };
}

function isRange(header: string | null, from: number, sizeBytes: number): boolean {
  const [, first, last, size] = RANGE.exec(header ?? '') ?? [];
  return Number(first) === from && Number(last) === sizeBytes - 1 && Number(size) === sizeBytes;
}

import { checkHeaderLine, type HeaderState } from './check-header-line.ts';
import { type ConnectTarget, parseRequestLine } from './parse-request-line.ts';
import type { HeadFault } from './reasons.ts';

/** Bounds of the head of a CONNECT. */
export interface ConnectHeadLimits {
  /** Longest request line or header line, bytes without the line end. */
  readonly lineBytes: number;
  /** Longest head with all line ends, bytes. */
  readonly headBytes: number;
  readonly headers: number;
}

/** Longest request line and header line, bytes. */
export const REQUEST_LINE_MAX = 8192;
/** Longest head, bytes. */
export const HEAD_MAX_BYTES = 32_768;
/** Most header lines. */
export const HEADER_COUNT_MAX = 100;
/** Longest run of bytes without a space at the start that can still be a method, bytes. */
export const METHOD_MAX_BYTES = 32;

export const CONNECT_HEAD_LIMITS: ConnectHeadLimits = { lineBytes: REQUEST_LINE_MAX, headBytes: HEAD_MAX_BYTES, headers: HEADER_COUNT_MAX };

/** `need-more`: feed the next bytes. `request`: `rest` holds the bytes after the head. `malformed`: final; `plain_http` is a refusal by policy. */
export type ConnectHeadResult =
  | { readonly state: 'need-more' }
  | ({ readonly state: 'request'; readonly rest: Uint8Array } & Pick<ConnectTarget, 'rawHost' | 'port'>)
  | { readonly state: 'malformed'; readonly reason: HeadFault };

/** Reads one CONNECT head from chunks of any size; each byte is looked at once and at most one line is kept. */
export interface ConnectHeadReader {
  push(chunk: Uint8Array): ConnectHeadResult;
  /** The verdict when no more bytes come: the fault found so far, or `truncated_head`. */
  end(): ConnectHeadResult;
  /** Bytes taken so far; 0 when the peer never said anything. */
  readonly bytesRead: number;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const DEL = 0x7f;
/** Room that a reader takes for its line before it has seen how long one is, bytes. Up to this many lie in the heap, without memory of their own. */
const FIRST_LINE_BYTES = 64;
const NEED_MORE: ConnectHeadResult = { state: 'need-more' };

/** A reader for one connection. */
// size: the steps share the state of one connection, and each of them is small
export function createConnectHeadReader(limits: ConnectHeadLimits = CONNECT_HEAD_LIMITS): ConnectHeadReader {
  let line = new Uint8Array(Math.min(limits.lineBytes, FIRST_LINE_BYTES));
  const headers: HeaderState = { count: 0, hosts: 0 };
  let length = 0;
  let total = 0;
  let sawCr = false;
  let leadingEmptyLine = false;
  let target: ConnectTarget | undefined;
  let requestLineDone = false;
  let fault: HeadFault | undefined;
  let result: ConnectHeadResult = NEED_MORE;

  const finish = (reason: HeadFault): ConnectHeadResult => {
    result = { state: 'malformed', reason: fault ?? reason };
    return result;
  };
  const note = (reason: HeadFault): void => {
    fault ??= reason;
  };
  const lineText = (): string => {
    let text = '';
    for (const byte of line.subarray(0, length)) text += String.fromCharCode(byte);
    return text;
  };

  function takeRequestLine(): ConnectHeadResult {
    if (length === 0 && !leadingEmptyLine && fault === undefined) {
      // RFC 9112 section 2.2: a server should ignore one empty line before the request line.
      leadingEmptyLine = true;
      return NEED_MORE;
    }
    requestLineDone = true;
    const parsed = parseRequestLine(lineText());
    if (parsed.ok) target = parsed.target;
    else if (!parsed.http) return finish(parsed.reason);
    else note(parsed.reason);
    return NEED_MORE;
  }

  function takeLine(rest: Uint8Array): ConnectHeadResult {
    if (!requestLineDone) return takeRequestLine();
    if (length > 0) {
      const found = checkHeaderLine(lineText(), headers, limits.headers);
      if (found === 'too_many_headers') return finish(found);
      if (found !== undefined) note(found);
      return NEED_MORE;
    }
    if (headers.hosts === 0 && target?.minorVersion === 1) note('missing_host');
    if (fault !== undefined || target === undefined) return finish('bad_request_line');
    result = { state: 'request', rawHost: target.rawHost, port: target.port, rest };
    return result;
  }

  function growLine(): void {
    const longer = new Uint8Array(Math.min(limits.lineBytes, line.length * 2));
    longer.set(line);
    line = longer;
  }

  /** Checks one byte inside a line; a result ends the reading at once. */
  function takeByte(byte: number): ConnectHeadResult {
    if (byte < SPACE ? byte !== TAB || !requestLineDone : byte === DEL) {
      if (!requestLineDone && total <= METHOD_MAX_BYTES) return finish(byte === TAB ? 'bad_request_line' : 'not_http');
      note('control_character');
    }
    if (length === limits.lineBytes) return finish(requestLineDone ? 'header_line_too_long' : 'request_line_too_long');
    if (length === line.length) growLine();
    line[length] = byte;
    length += 1;
    if (!requestLineDone && length === METHOD_MAX_BYTES && !line.subarray(0, length).includes(SPACE)) return finish('not_http');
    return NEED_MORE;
  }

  function endLine(chunk: Uint8Array, next: number): ConnectHeadResult {
    if (!sawCr) note('bare_line_feed');
    sawCr = false;
    const taken = takeLine(chunk.subarray(next));
    length = 0;
    return taken;
  }

  function take(chunk: Uint8Array, index: number): ConnectHeadResult {
    const byte = chunk[index] ?? 0;
    total += 1;
    if (total > limits.headBytes) return finish('head_too_large');
    if (byte === LF) return endLine(chunk, index + 1);
    if (sawCr) note('bare_carriage_return');
    sawCr = byte === CR;
    return sawCr ? NEED_MORE : takeByte(byte);
  }

  return {
    push(chunk) {
      for (let index = 0; index < chunk.length && result.state === 'need-more'; index += 1) take(chunk, index);
      return result;
    },
    end() {
      return result.state === 'need-more' ? finish('truncated_head') : result;
    },
    get bytesRead() {
      return total;
    },
  };
}

import type { ChainFault } from './reasons.ts';

/** The head of an answer, the end of its lines included. */
export const PROXY_ANSWER_MAX_BYTES = 8_192;
export const PROXY_ANSWER_LINES_MAX = 100;

/** What is known of a proxy's answer to our CONNECT so far. `rest` came in one piece with its head. */
export type ProxyAnswer =
  | { readonly state: 'need-more' }
  | { readonly state: 'malformed' }
  | { readonly state: 'answer'; readonly status: number; readonly rest: Uint8Array };

export interface ProxyAnswerReader {
  push(chunk: Uint8Array): ProxyAnswer;
}

const STATUS_LINE = /^HTTP\/1\.[01] ([0-9]{3})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*$/;
const [CR, LF] = [0x0d, 0x0a];

/** Reads the answer of an HTTP proxy to a CONNECT, however it is cut: its status line, header lines that are headers, an empty line. */
export function createProxyAnswerReader(): ProxyAnswerReader {
  let line = '';
  let lines = 0;
  let size = 0;
  let status: number | undefined;
  let result: ProxyAnswer = { state: 'need-more' };
  const endLine = (): ProxyAnswer['state'] => {
    lines += 1;
    if (lines > PROXY_ANSWER_LINES_MAX) return 'malformed';
    if (status !== undefined) return line === '' ? 'answer' : HEADER_LINE.test(line) ? 'need-more' : 'malformed';
    const found = STATUS_LINE.exec(line)?.[1];
    status = Number(found);
    return found === undefined ? 'malformed' : 'need-more';
  };
  const finish = (end: ProxyAnswer): ProxyAnswer => {
    result = end;
    return end;
  };
  return {
    push(chunk) {
      if (result.state !== 'need-more') return result;
      for (const [at, byte] of chunk.entries()) {
        size += 1;
        if (size > PROXY_ANSWER_MAX_BYTES) return finish({ state: 'malformed' });
        if (byte !== LF) {
          line += String.fromCharCode(byte);
          continue;
        }
        if (line.charCodeAt(line.length - 1) !== CR) return finish({ state: 'malformed' });
        line = line.slice(0, -1);
        const state = endLine();
        line = '';
        if (state === 'malformed') return finish({ state });
        if (state === 'answer') return finish({ state, status: status ?? 0, rest: chunk.subarray(at + 1) });
      }
      return result;
    },
  };
}

/** What a status of the proxy means: undefined for an open tunnel. Only 2xx opens one; what is neither that nor a refusal is no answer to a CONNECT. */
export function decideProxyStatus(status: number): ChainFault | undefined {
  if (status >= 200 && status <= 299) return undefined;
  if (status === 407) return 'chain_auth_refused';
  if (status >= 400 && status <= 499) return 'chain_refused';
  return status >= 500 && status <= 599 ? 'chain_upstream_failed' : 'chain_answer_invalid';
}

import type { HeadFault } from './reasons.ts';

/** What the head of a CONNECT has said so far, as far as it matters. */
export interface HeaderState {
  count: number;
  hosts: number;
}

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/;

/** Judges one header line without its line end (RFC 9112 section 5); the values are read for framing alone and kept nowhere. */
export function checkHeaderLine(line: string, state: HeaderState, countMax: number): HeadFault | undefined {
  state.count += 1;
  if (state.count > countMax) return 'too_many_headers';
  if (line.startsWith(' ') || line.startsWith('\t')) return 'folded_header';
  const match = HEADER.exec(line);
  if (match === null) return 'bad_header';
  const [, name = '', value = ''] = match;
  switch (name.toLowerCase()) {
    case 'host':
      state.hosts += 1;
      return state.hosts > 1 ? 'repeated_host' : undefined;
    case 'transfer-encoding':
      return 'body_not_allowed';
    case 'content-length':
      // A length of zero announces nothing, and some clients send it.
      return value === '0' ? undefined : 'body_not_allowed';
    default:
      return undefined;
  }
}

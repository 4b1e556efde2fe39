import type { HeaderPair } from './request-headers.ts';
import { headerPairs } from './request-headers.ts';

/** Headers of an answer that a guest gets. */
const DOWN =
  /^(?:content-type|cache-control|date|location|retry-after|retry-after-ms|request-id|x-request-id|x-should-retry|openai-processing-ms|openai-version|openai-model|anthropic-ratelimit-[a-z0-9-]+|x-ratelimit-[a-z0-9-]+)$/;
const VALUE_MAX_CHARACTERS = 8_192;

/** What an answer may be: its headers as the guest gets them, or why it gets none of it. */
export type AnswerDecision =
  | { readonly verdict: 'allowed'; readonly reason: 'listed'; readonly headers: readonly HeaderPair[]; readonly isEventStream: boolean }
  | { readonly verdict: 'refused'; readonly reason: 'upstream_answer_refused'; readonly message: string };

/**
 * What of the upstream's headers goes down: a closed list, without a value in which `isLeak` finds the credential. An answer that is
 * encoded is refused, since nothing could be found in it; the host asks for none.
 */
export function decideAnswer(raw: readonly string[], isLeak: (text: string) => boolean): AnswerDecision {
  const pairs = headerPairs(raw);
  const encodings = pairs.filter(([name]) => name === 'content-encoding').map(([, value]) => value.toLowerCase());
  if (encodings.some((value) => value !== 'identity'))
    return {
      verdict: 'refused',
      reason: 'upstream_answer_refused',
      message: 'the upstream sent an encoded answer, which was not asked for',
    };
  const headers = pairs.filter(([name, value]) => DOWN.test(name) && value.length <= VALUE_MAX_CHARACTERS && !isLeak(value));
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  return { verdict: 'allowed', reason: 'listed', headers, isEventStream: /^text\/event-stream\b/i.test(type) };
}

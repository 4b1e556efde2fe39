import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import type { GuestEndpoint } from './guest-endpoint.ts';

/** A link that is lost while a guest starts is dialled again. */
const LOST: ReadonlySet<unknown> = new Set(['link_lost', 'link_closed', 'link_replaced']);

export interface FirstAnswerWait {
  /** From now to the answer, in `ms`. */
  readonly timeoutMs: number;
  /** Asks the guest agent for something that it always has. */
  readonly ask: (session: LinkSession) => Promise<unknown>;
  /** The link is up for the first time. */
  readonly onLinkUp?: (() => void) | undefined;
}

/**
 * Waits until the guest agent has answered once. Rejects with `link_not_up` when that takes too long, or with what else the first answer is; the caller then
 * closes the endpoint, and knows better whether the guest ended.
 */
export async function firstAnswer(endpoint: Pick<GuestEndpoint, 'session'>, wait: FirstAnswerWait): Promise<void> {
  const late = Promise.withResolvers<never>();
  const fault = new CodedError('link_not_up', `The guest agent did not answer within ${wait.timeoutMs} ms.`, {
    action: 'Destroy the VM and start the attempt again.',
  });
  const timer = setTimeout(() => late.reject(fault), wait.timeoutMs);
  try {
    await Promise.race([askUntilAnswered(endpoint, wait), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function askUntilAnswered(endpoint: Pick<GuestEndpoint, 'session'>, { timeoutMs, ask, onLinkUp }: FirstAnswerWait): Promise<void> {
  for (let isUp = false; ; isUp = true) {
    const session = await endpoint.session(timeoutMs);
    if (!isUp) onLinkUp?.();
    try {
      await ask(session);
      return;
    } catch (error) {
      if (LOST.has(codeOf(error))) await session.closed;
      // An agent that says nothing yet is still loading.
      else if (codeOf(error) !== 'guest_timeout') throw error;
    }
  }
}

import type { LinkSession } from '@firecrew/link';
import { type HealthReply, type HostRequest, healthReplySchema } from '@firecrew/protocol';
import { CALL_TIMEOUT_MS, withDeadline } from './deadlines.ts';
import { expectAccepted, expectHead, GuestRefusal } from './read-body.ts';

/** State of the guest agent and its two listeners. */
export type GuestHealth = Extract<HealthReply, { ok: true }>;

/** Asks the guest agent how it is, and to add `addClockMs` to the clock of its VM first. Throws `guest_refused`, `guest_reply_invalid`, `guest_timeout` or a link error. */
export async function guestHealth(session: LinkSession, addClockMs?: number): Promise<GuestHealth> {
  const stream = session.open({ t: 'health', ...(addClockMs === undefined ? {} : { addClockMs }) } satisfies HostRequest);
  stream.end();
  stream.resume();
  const head = await withDeadline(stream, 'health', CALL_TIMEOUT_MS, () => expectHead(stream, 'health', healthReplySchema));
  if (!head.ok) throw new GuestRefusal('health', head);
  return head;
}

/** Asks the guest agent to kill what it runs, to remove the folders `forget`, and to end. Settles when it has said that it will. */
export function shutdownGuest(session: LinkSession, timeoutMs: number = CALL_TIMEOUT_MS, forget: readonly string[] = []): Promise<void> {
  return requestOnly(session, { t: 'shutdown', ...(forget.length === 0 ? {} : { forget: [...forget] }) }, timeoutMs);
}

/** Sends a request whose whole answer is its head. */
export async function requestOnly(session: LinkSession, request: HostRequest, timeoutMs: number = CALL_TIMEOUT_MS): Promise<void> {
  const stream = session.open(request);
  stream.end();
  stream.resume();
  await withDeadline(stream, request.t, timeoutMs, () => expectAccepted(stream, request.t));
}

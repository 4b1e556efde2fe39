import type { Readable } from 'node:stream';
import { CodedError, codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { type ExecEnd, type HostRequest, waitReplySchema } from '@firecrew/protocol';
import { CALL_TIMEOUT_MS, outerDeadlineMs, withDeadline } from './deadlines.ts';
import { expectAccepted, GuestRefusal, readBody } from './read-body.ts';
import { requestOnly } from './simple-requests.ts';

/** Output kept per exec where the caller sets no limit, in bytes. */
export const DEFAULT_OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024;

/** A command for the guest. `id` is the caller's and is never used twice in one VM. */
export interface ExecRequest {
  readonly id: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>> | null;
  readonly timeoutMs: number;
  readonly outputLimitBytes?: number;
}

/**
 * Starts a command. Settles when it runs. Throws `guest_refused` (its `guestCode` says why nothing runs) or a link error; after a
 * link error start it again: `exec_id_taken` then means that it runs.
 */
export function startExec(session: LinkSession, exec: ExecRequest): Promise<void> {
  const request: HostRequest = {
    t: 'exec',
    id: exec.id,
    argv: [...exec.argv],
    cwd: exec.cwd,
    env: exec.env === undefined || exec.env === null ? null : { ...exec.env },
    timeoutMs: exec.timeoutMs,
    outputLimitBytes: exec.outputLimitBytes ?? DEFAULT_OUTPUT_LIMIT_BYTES,
  };
  return requestOnly(session, request, CALL_TIMEOUT_MS);
}

/**
 * Waits for the end of an exec whose own time limit is `timeoutMs`; the wait itself ends `OUTER_GRACE_MS` later. Any exit code is
 * an end; no record is none. Throws like {@link startExec}; after a link error wait again over the next session.
 */
export async function waitExec(session: LinkSession, id: string, timeoutMs: number): Promise<ExecEnd> {
  const stream = session.open({ t: 'wait', id } satisfies HostRequest);
  stream.end();
  return withDeadline(stream, 'wait', outerDeadlineMs(timeoutMs), async () => {
    await expectAccepted(stream, 'wait');
    const body = await readBody(stream, 'wait', waitReplySchema);
    if (!body.ok) throw new GuestRefusal('wait', body);
    return checkEnd(body.end);
  });
}

/** The output of an exec from `offset` on, as it comes, to its end. Follow again from the next offset after a link error. */
export async function followExec(session: LinkSession, id: string, offset: number): Promise<Readable> {
  const stream = session.open({ t: 'follow', id, offset } satisfies HostRequest);
  stream.end();
  await withDeadline(stream, 'follow', CALL_TIMEOUT_MS, () => expectAccepted(stream, 'follow'));
  return stream;
}

/** Sends a signal to a running exec and all its processes. An exec that has ended is no error. */
export async function killExec(session: LinkSession, id: string, signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT' = 'SIGKILL'): Promise<void> {
  await requestOnly(session, { t: 'kill', id, signal });
}

/** True for errors after which the same request may be made again over the next session. */
export function isLinkError(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'link_lost' || code === 'link_replaced' || code === 'link_closed';
}

function checkEnd(end: ExecEnd): ExecEnd {
  // Only this combination can be read in one way; a code beside a timeout or none beside an exit could pass for success.
  const isSound =
    end.kind === 'exited'
      ? end.exitCode !== null && end.signal === null
      : end.kind === 'signalled'
        ? end.signal !== null && end.exitCode !== 0
        : end.exitCode === null;
  if (!isSound) {
    throw new CodedError('guest_reply_invalid', `The guest's record of an exec that "${end.kind}" contradicts itself.`, { id: 'wait' });
  }
  return end;
}

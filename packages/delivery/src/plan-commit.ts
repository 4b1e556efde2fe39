import { DeliveryError } from './delivery-error.ts';

/** Longest subject line, in characters. */
export const SUBJECT_MAX_CHARS = 72;
/** Longest text of one trailer, in characters. */
export const TRAILER_MAX_CHARS = 200;
/** The identity of a commit that nobody else is named for. */
export const DEFAULT_IDENTITY: CommitIdentity = { name: 'Firecrew', email: 'firecrew@localhost' };

/** Who a commit is by. */
export interface CommitIdentity {
  readonly name: string;
  readonly email: string;
}

/** How the work was checked: by us in a fresh VM, by the guest's own word, or not at all. */
export type CheckState = 'verified' | 'reported' | 'unverified';

/** What a commit of a delivery says. Every value is data: line breaks and control characters are taken out. */
export interface CommitInput {
  readonly title: string;
  readonly missionId: string;
  readonly phaseId?: string;
  readonly attempt?: number;
  readonly snapshotId?: string;
  readonly check: CheckState;
  /** Time of the commit from the database, whole seconds since 1970. */
  readonly atSeconds: number;
  readonly identity?: CommitIdentity;
}

/** A commit whose id depends on its tree, its parent and this alone. */
export interface CommitPlan {
  readonly message: string;
  readonly author: CommitIdentity;
  readonly committer: CommitIdentity;
  /** Git's raw form: `@<seconds> +0000`, the only form that git reads for every second. */
  readonly date: string;
}

function oneLine(text: string, max: number): string {
  const line = text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/ +/g, ' ')
    .trim();
  const letters = [...line];
  return letters.length <= max
    ? line
    : `${letters
        .slice(0, max - 1)
        .join('')
        .trimEnd()}…`;
}

function cleanIdentity(identity: CommitIdentity): CommitIdentity {
  const clean = (text: string, fallback: string): string => {
    const kept = oneLine(text.replace(/[<>]/g, ''), TRAILER_MAX_CHARS).replace(/^[.,:;"'\\ ]+|[.,:;"'\\ ]+$/g, '');
    return kept === '' ? fallback : kept;
  };
  return { name: clean(identity.name, DEFAULT_IDENTITY.name), email: clean(identity.email, DEFAULT_IDENTITY.email) };
}

/** `atSeconds` in git's raw form. Throws `invalid_date` outside 0 to 2^33-1. */
export function commitDate(atSeconds: number): string {
  if (!Number.isSafeInteger(atSeconds) || atSeconds < 0 || atSeconds > 2 ** 33 - 1)
    throw new DeliveryError('invalid_date', `${atSeconds} is no commit time`);
  return `@${atSeconds} +0000`;
}

/** Message, identity and date of a commit: the same input gives the same bytes. Throws `invalid_date`. */
export function planCommit(input: CommitInput): CommitPlan {
  const date = commitDate(input.atSeconds);
  const subject = oneLine(input.title, SUBJECT_MAX_CHARS);
  const trailers = [
    ['Firecrew-Mission', input.missionId],
    ['Firecrew-Phase', input.phaseId],
    ['Firecrew-Attempt', input.attempt?.toString()],
    ['Firecrew-Snapshot', input.snapshotId],
    ['Firecrew-Check', input.check],
  ] as const;
  const lines = trailers.flatMap(([key, value]) => (value === undefined ? [] : [`${key}: ${oneLine(value, TRAILER_MAX_CHARS)}`]));
  // A subject that reads like a trailer or a comment would be taken for one.
  const safeSubject = subject === '' || subject.startsWith('#') ? `Firecrew: ${subject}`.trim() : subject;
  const identity = cleanIdentity(input.identity ?? DEFAULT_IDENTITY);
  return { message: `${safeSubject}\n\n${lines.join('\n')}\n`, author: identity, committer: identity, date };
}

/** The commit that stands for a caller's uncommitted changes; its parent is the caller's HEAD. Throws `invalid_date`. */
export function planSyntheticBase(input: {
  readonly missionId: string;
  readonly atSeconds: number;
  readonly identity?: CommitIdentity;
}): CommitPlan {
  return planCommit({ ...input, title: 'Uncommitted changes at the start of the mission', check: 'unverified' });
}

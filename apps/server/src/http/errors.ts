import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { ErrorBody } from '@firecrew/protocol';
import { type DatabaseFault, databaseFault } from '@firecrew/store';
import type { FastifyBaseLogger } from 'fastify';

/** HTTP status of each code; a code that is not listed is a fault of ours: 500 without its text. */
const STATUS: Readonly<Record<string, number>> = {
  unauthorized: 401,
  forbidden: 403,
  host_refused: 403,
  origin_refused: 403,
  bad_request: 400,
  bad_upload: 400,
  blob_digest_mismatch: 400,
  pack_unusable: 400,
  allow_list_invalid: 400,
  learn_not_allowed: 400,
  learn_with_credentials: 400,
  policy_above_ceiling: 400,
  policy_rule_unknown: 400,
  policy_too_large: 400,
  driver_below_floor: 403,
  backend_unknown: 400,
  repository_url_refused: 400,
  snapshot_mismatch: 400,
  remote_refused: 400,
  remote_empty: 400,
  remote_branch_missing: 400,
  remote_shallow: 400,
  remote_unreadable: 502,
  git_timed_out: 504,
  join_token_invalid: 403,
  node_name_taken: 409,
  mission_not_found: 404,
  phase_not_found: 404,
  artifact_not_found: 404,
  blob_not_found: 404,
  image_unknown: 404,
  image_range_wrong: 416,
  image_transfers_full: 429,
  seat_not_found: 404,
  seat_key_not_found: 404,
  seat_unlinked: 409,
  seat_revoked: 409,
  nothing_delivered: 404,
  not_found: 404,
  mission_ended: 409,
  mission_not_running: 409,
  mission_not_draft: 409,
  mission_without_phases: 400,
  phase_not_retryable: 409,
  nothing_to_approve: 409,
  attempt_stale: 409,
  attempt_unknown: 404,
  log_gap: 409,
  too_large: 413,
  blob_too_large: 413,
  unavailable: 503,
  blob_damaged: 500,
  disk_full: 507,
  database_unavailable: 503,
  internal: 500,
};

/** No room in a file system. */
const DISK_FULL: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];

/** Status and body for a thrown value. What is unexpected is logged and answered without detail. */
export function answerError(error: unknown, log: FastifyBaseLogger): { status: number; body: ErrorBody } {
  const known = (error instanceof CodedError ? answerCoded(error) : undefined) ?? frameworkError(error);
  if (known !== undefined) return known;
  log.error({ err: error }, 'request failed');
  const told = describeFault(DISK_FULL.includes(codeOf(error)) ? 'disk_full' : databaseFault(error));
  return { status: STATUS[told.code] ?? 500, body: bodyOf(told) };
}

function describeFault(fault: DatabaseFault | undefined): CodedError {
  switch (fault) {
    case 'disk_full':
      return new CodedError('disk_full', 'a disk of the server is full', {
        action: 'Free space at its home or its database; what was stored is kept.',
      });
    case 'unavailable':
      return new CodedError('database_unavailable', 'the database of the server does not answer', {
        action: 'Try again in a moment; if it stays, look at the log of the database, and at its disk.',
      });
    case undefined:
      return new CodedError('internal', 'the server failed; its log has the cause');
  }
}

function answerCoded(error: CodedError): { status: number; body: ErrorBody } | undefined {
  const status = STATUS[error.code];
  return status === undefined ? undefined : { status, body: bodyOf(error) };
}

function bodyOf({ code, message, action, id }: CodedError): ErrorBody {
  return { error: { code, message, ...(action === undefined ? {} : { action }), ...(id === undefined ? {} : { id }) } };
}

function frameworkError(error: unknown): { status: number; body: ErrorBody } | undefined {
  if (typeof error !== 'object' || error === null || !('statusCode' in error) || typeof error.statusCode !== 'number') return undefined;
  if (error.statusCode < 400 || error.statusCode >= 500) return undefined;
  const code = error.statusCode === 413 ? 'too_large' : 'bad_request';
  return { status: error.statusCode, body: { error: { code, message: messageOf(error).slice(0, 2000) } } };
}

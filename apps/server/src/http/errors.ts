import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { ErrorBody } from '@firecrew/protocol';
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
};

/** No room, of the file system or of PostgreSQL. */
const DISK_FULL: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT', '53100'];

/** Status and body for a thrown value. What is unexpected is logged and answered without detail. */
export function answerError(error: unknown, log: FastifyBaseLogger): { status: number; body: ErrorBody } {
  const code = codeOf(error);
  if (error instanceof CodedError && code !== undefined) {
    const status = STATUS[code];
    if (status !== undefined) {
      const extra = {
        ...(error.action === undefined ? {} : { action: error.action }),
        ...(error.id === undefined ? {} : { id: error.id }),
      };
      return { status, body: { error: { code, message: error.message, ...extra } } };
    }
  }
  const framework = frameworkError(error);
  if (framework !== undefined) return framework;
  log.error({ err: error }, 'request failed');
  if (DISK_FULL.includes(code)) {
    const full = {
      code: 'disk_full',
      message: 'a disk of the server is full',
      action: 'Free space at its home or its database; what was stored is kept.',
    };
    return { status: 507, body: { error: full } };
  }
  return { status: 500, body: { error: { code: 'internal', message: 'the server failed; its log has the cause' } } };
}

function frameworkError(error: unknown): { status: number; body: ErrorBody } | undefined {
  if (typeof error !== 'object' || error === null || !('statusCode' in error) || typeof error.statusCode !== 'number') return undefined;
  if (error.statusCode < 400 || error.statusCode >= 500) return undefined;
  const code = error.statusCode === 413 ? 'too_large' : 'bad_request';
  return { status: error.statusCode, body: { error: { code, message: messageOf(error).slice(0, 2000) } } };
}

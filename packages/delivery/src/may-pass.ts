/** Codes of failures that lie with the host and its load: a time limit, a full disk, a store or program that is not there now. */
const MAY_PASS: readonly string[] = ['git_timed_out', 'git_failed', 'git_cancelled', 'git_not_found', 'blob_store_unavailable'];

/** Whether a delivery that failed with this code may succeed when it is tried again. An error without a code of ours is not known, so it may. */
export function mayPass(code: string | undefined): boolean {
  return code === undefined || MAY_PASS.includes(code);
}

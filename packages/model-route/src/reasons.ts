/** Why the head of a request is refused. */
export const HEAD_REFUSALS = [
  'bad_request',
  'bad_target',
  'method_not_allowed',
  'path_not_listed',
  'query_not_listed',
  'head_too_large',
  'too_many_headers',
  'bad_header',
  'two_framings',
  'repeated_header',
  'upgrade_refused',
  'encoding_refused',
  'content_type_refused',
  'body_too_large',
] as const;

/** Why the body of a request is refused. */
export const BODY_REFUSALS = [
  'body_not_json',
  'body_too_deep',
  'body_too_complex',
  'field_not_listed',
  'feature_refused',
  'bad_model',
  'model_not_listed',
  'bad_output_limit',
] as const;

/**
 * Why there is no budget for a request. `budget_reserved` passes: calls under way hold what is left. `cost_unknown` is what nobody can estimate
 * on a route that has a budget.
 */
export const BUDGET_REFUSALS = ['budget_reached', 'budget_reserved', 'model_not_priced', 'cost_unknown'] as const;

/** Why the host cannot serve a request. What begins with `chain` is of the operator's own proxy, and not of the upstream: nothing was sent. */
export const HOST_REFUSALS = [
  'body_timeout',
  'route_closed',
  'lease_lost',
  'calls_busy',
  'bodies_busy',
  'audit_unavailable',
  'credential_missing',
  'broker_unreachable',
  'broker_lost',
  'handle_refused',
  'isolation_missing',
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_answer_refused',
  'chain_unreachable',
  'chain_timeout',
  'chain_early_bytes',
  'chain_credential_unreadable',
  'chain_auth_refused',
  'chain_refused',
  'chain_upstream_failed',
  'chain_answer_invalid',
] as const;

export type HeadRefusal = (typeof HEAD_REFUSALS)[number];
export type BodyRefusal = (typeof BODY_REFUSALS)[number];
export type BudgetRefusal = (typeof BUDGET_REFUSALS)[number];
export type HostRefusal = (typeof HOST_REFUSALS)[number];
export type RouteRefusal = HeadRefusal | BodyRefusal | BudgetRefusal | HostRefusal;

const STATUS: Readonly<Record<RouteRefusal, number>> = {
  bad_request: 400,
  bad_target: 400,
  method_not_allowed: 405,
  path_not_listed: 403,
  query_not_listed: 400,
  head_too_large: 431,
  too_many_headers: 431,
  bad_header: 400,
  two_framings: 400,
  repeated_header: 400,
  upgrade_refused: 400,
  encoding_refused: 415,
  content_type_refused: 415,
  body_too_large: 413,
  body_not_json: 400,
  body_too_deep: 400,
  body_too_complex: 400,
  field_not_listed: 403,
  feature_refused: 403,
  bad_model: 400,
  model_not_listed: 403,
  bad_output_limit: 400,
  budget_reached: 403,
  budget_reserved: 429,
  model_not_priced: 403,
  cost_unknown: 403,
  body_timeout: 408,
  route_closed: 503,
  lease_lost: 503,
  calls_busy: 429,
  bodies_busy: 429,
  audit_unavailable: 503,
  credential_missing: 503,
  broker_unreachable: 503,
  broker_lost: 502,
  handle_refused: 503,
  isolation_missing: 503,
  upstream_unreachable: 502,
  upstream_timeout: 504,
  upstream_answer_refused: 502,
  chain_unreachable: 502,
  chain_timeout: 504,
  chain_early_bytes: 502,
  chain_credential_unreadable: 502,
  chain_auth_refused: 502,
  chain_refused: 502,
  chain_upstream_failed: 502,
  chain_answer_invalid: 502,
};

/** HTTP status of a refusal. */
export function refusalStatus(reason: RouteRefusal): number {
  return STATUS[reason];
}

import type { RouteRefusal } from '@firecrew/model-route';

const DETAIL: Readonly<Partial<Record<RouteRefusal, string>>> = {
  route_closed: 'the model route is open while the agent works',
  lease_lost: 'this attempt has lost its lease',
  calls_busy: 'too many calls at once; try again when one has ended',
  bodies_busy: 'too many bytes of requests at once; try again when one has ended',
  body_too_large: 'the body is larger than the model route takes',
  body_timeout: 'the body did not come in time',
  bad_request: 'the body did not come whole',
  audit_unavailable: 'the audit could not be written, so nothing is forwarded',
  credential_missing: 'the host has no credential for the model route yet',
  broker_unreachable: 'the credential broker of the node cannot be reached, and nothing was sent; try again',
  broker_lost: 'the credential broker of the node ended before there was an answer; try again',
  handle_refused: 'the credential broker of the node does not know this turn, or not any more',
  upstream_unreachable: 'the upstream of the model route cannot be reached, or ended without an answer',
  upstream_answer_refused: 'the upstream sent an encoded answer, which was not asked for',
  upstream_timeout: 'the upstream of the model route did not answer in time',
  chain_unreachable: 'the proxy of the operator, through which the model route leads, cannot be reached; tell the operator',
  chain_timeout: 'the proxy of the operator, through which the model route leads, did not connect in time; try again, or tell the operator',
  chain_early_bytes: 'the proxy of the operator sent bytes before the tunnel began; tell the operator',
  chain_credential_unreadable: 'the credential for the proxy of the operator cannot be read on the host; tell the operator',
  chain_auth_refused: 'the proxy of the operator did not take the credential of the host; tell the operator',
  chain_refused: 'the proxy of the operator refuses the upstream of the model route; tell the operator',
  chain_upstream_failed: 'the proxy of the operator could not reach the upstream of the model route',
  chain_answer_invalid: 'the proxy of the operator gave no answer to a CONNECT; tell the operator',
};

/** What a guest is told of a refusal that the host adds; the reason itself where there is no more to say. */
export function hostDetail(reason: RouteRefusal): string {
  return DETAIL[reason] ?? reason;
}

import { BUDGET_DENIALS } from '@firecrew/egress-policy';
import type { EgressVerdict } from './audit-line.ts';
import type { Via } from './find-way.ts';
import type { RefusalReason } from './reasons.ts';

/** A connection that gets no tunnel: what its audit line and its answer say. */
export interface Refusal {
  readonly verdict: Exclude<EgressVerdict, 'allowed'>;
  readonly reason: RefusalReason;
  readonly host?: string;
  readonly port?: number;
  readonly address?: string;
  readonly rule?: string;
  readonly via?: Via;
  readonly lookupMs?: number;
  readonly connectMs?: number;
}

const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  414: 'URI Too Long',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

const RETRY_AFTER_SECONDS = 1;

/** Status and sentence of every reason. The reasons after the 200 are never sent; they stand here so that the table is whole. */
const ANSWERS: Readonly<Record<RefusalReason, readonly [status: number, sentence: string]>> = {
  empty_host: [400, 'the target has no host'],
  bad_character: [400, 'the host may hold only ASCII letters, digits, hyphen, underscore and dot'],
  empty_label: [400, 'the host has an empty label'],
  label_too_long: [400, 'a label of the host is longer than 63 bytes'],
  name_too_long: [400, 'the host is longer than 253 bytes'],
  hyphen_at_label_edge: [400, 'a label of the host begins or ends with a hyphen'],
  ip_literal: [403, 'addresses are not reachable, only names on the allow-list'],
  numeric_host: [403, 'a name that ends in a number is taken for an address and refused'],
  not_listed: [403, 'the host is not on the allow-list'],
  port_not_listed: [403, 'the host is on the allow-list, but not with this port'],
  empty_list: [403, 'the allow-list is empty, so nothing is reachable'],
  unknown_backend: [403, 'the backend is unknown, so nothing is reachable'],
  no_ceiling_given: [403, 'the operator gave no ceiling, so nothing is reachable'],
  unparsable_address: [403, 'the host resolved to something that is not an address'],
  own_address: [403, 'the host resolved to an address of the node itself'],
  unspecified_address: [403, 'the host resolved to an unspecified address'],
  loopback_address: [403, 'the host resolved to a loopback address'],
  private_address: [403, 'the host resolved to a private address'],
  shared_address: [403, 'the host resolved to a carrier-grade NAT address'],
  link_local_address: [403, 'the host resolved to a link-local address'],
  metadata_address: [403, 'the host resolved to a cloud metadata address'],
  multicast_address: [403, 'the host resolved to a multicast address'],
  reserved_address: [403, 'the host resolved to a reserved address'],
  documentation_address: [403, 'the host resolved to a documentation address'],
  benchmark_address: [403, 'the host resolved to a benchmark address'],
  translated_address: [403, 'the host resolved to an address that carries another one'],
  not_global_address: [403, 'the host resolved to an address outside the public internet'],
  host_connections_spent: [403, 'the connections that a turn may open to this host are used up; the operator can raise the budget'],
  host_bytes_spent: [403, 'the bytes that a turn may exchange with this host are used up; the operator can raise the budget'],
  turn_connections_spent: [403, 'the connections that a turn may open are used up; the operator can raise the budget'],
  turn_bytes_spent: [403, 'the bytes that a turn may exchange are used up; the operator can raise the budget'],
  not_http: [400, 'this is an HTTP CONNECT proxy; the bytes are not HTTP'],
  request_line_too_long: [414, 'the request line is too long'],
  header_line_too_long: [431, 'a header line is too long'],
  head_too_large: [431, 'the head is too large'],
  too_many_headers: [431, 'the head has too many header lines'],
  bare_line_feed: [400, 'lines must end with CR LF'],
  bare_carriage_return: [400, 'a CR without LF'],
  control_character: [400, 'the head has a control character'],
  bad_request_line: [400, 'the request line must be CONNECT host:port HTTP/1.1'],
  bad_version: [400, 'only HTTP/1.0 and HTTP/1.1 are spoken'],
  method_not_connect: [405, 'only CONNECT is offered'],
  plain_http: [405, 'plain HTTP is not forwarded; use https, which tunnels with CONNECT'],
  missing_port: [400, 'the target must be host:port'],
  bad_port: [400, 'the port must be a number from 1 to 65535'],
  bad_header: [400, 'a header line is not a header'],
  folded_header: [400, 'folded header lines are refused'],
  missing_host: [400, 'HTTP/1.1 needs a Host header'],
  repeated_host: [400, 'the Host header is repeated'],
  body_not_allowed: [400, 'CONNECT has no body'],
  truncated_head: [400, 'the head ended early'],
  not_tls: [403, 'the tunnel must carry TLS'],
  bad_record: [403, 'the first TLS record is broken'],
  hello_too_large: [403, 'the ClientHello is too large'],
  bad_hello: [403, 'the ClientHello is broken'],
  repeated_extension: [403, 'the ClientHello repeats an extension'],
  bad_server_name: [403, 'the server name of the ClientHello is broken'],
  truncated_hello: [403, 'the ClientHello ended early'],
  no_server_name: [403, 'the ClientHello has no server name'],
  server_name_mismatch: [403, 'the server name of the ClientHello is not the host of the tunnel'],
  head_timeout: [408, 'the head did not arrive in time'],
  lookup_failed: [502, 'the host could not be resolved'],
  lookup_empty: [502, 'the host has no address'],
  lookup_timeout: [504, 'the host could not be resolved in time'],
  too_many_addresses: [502, 'the host resolved to too many addresses'],
  dial_failed: [502, 'the host refused the connection'],
  dial_timeout: [504, 'the host did not answer in time'],
  chain_itself: [403, 'the proxy of the operator is no destination'],
  chain_unreachable: [502, 'the proxy of the operator cannot be reached; tell the operator'],
  chain_timeout: [504, 'the proxy of the operator did not connect in time; try again, or tell the operator'],
  chain_auth_refused: [502, 'the proxy of the operator did not take the credential of this host; tell the operator'],
  chain_refused: [403, 'the proxy of the operator refuses the host; whoever runs it can allow it'],
  chain_upstream_failed: [502, 'the proxy of the operator could not reach the host'],
  chain_answer_invalid: [502, 'the proxy of the operator gave no answer to a CONNECT; tell the operator'],
  chain_early_bytes: [502, 'the proxy of the operator sent bytes before the tunnel began; tell the operator'],
  chain_credential_unreadable: [502, 'the credential for the proxy of the operator cannot be read on this host; tell the operator'],
  audit_unavailable: [503, 'the audit line could not be written, so no tunnel is opened'],
  lease_lost: [503, 'the lease of this attempt is lost'],
  policy_changed: [403, 'the policy changed while the tunnel was opened, and refuses it now'],
  proxy_closed: [503, 'the proxy is closing'],
  connections_busy: [503, 'too many connections of this machine'],
  tunnels_busy: [503, 'too many tunnels of this machine'],
  host_busy: [429, 'too many tunnels to this host'],
  hello_timeout: [403, 'no ClientHello arrived in time'],
  client_gone: [400, 'the client went away'],
  internal_error: [500, 'the proxy failed'],
};

/** The HTTP status of a reason. */
export function refusalStatus(reason: RefusalReason): number {
  return ANSWERS[reason][0];
}

function isBudget(reason: RefusalReason): boolean {
  return BUDGET_DENIALS.some((known) => known === reason);
}

/** The whole answer of a refusal, with the code in the status line, in `x-firecrew-reason` and in the body: clients hide one or the other. */
export function formatRefusal(refusal: Refusal): string {
  const [status, sentence] = ANSWERS[refusal.reason];
  const target = refusal.host === undefined ? '' : `${refusal.host}${refusal.port === undefined ? '' : `:${refusal.port}`} `;
  // The rule is of the policy's own text, which guests may know of a budget alone: a list would tell them what else there is.
  const budget = isBudget(refusal.reason) && refusal.rule !== undefined ? ` (${refusal.rule})` : '';
  const body = `firecrew egress: ${target}${refusal.verdict} (${refusal.reason}): ${sentence}${budget}\n`;
  const lines = [
    `HTTP/1.1 ${status} ${PHRASES[status] ?? 'Error'} (${refusal.reason})`,
    `x-firecrew-reason: ${refusal.reason}`,
    'Content-Type: text/plain',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  if (status === 405) lines.push('Allow: CONNECT');
  if (refusal.verdict === 'busy') lines.push(`Retry-After: ${RETRY_AFTER_SECONDS}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

export const TUNNEL_OPEN_ANSWER = 'HTTP/1.1 200 Connection Established\r\n\r\n';

/** Why a name is not a host name at all. */
export const HOST_FAULTS = [
  'empty_host',
  'bad_character',
  'empty_label',
  'label_too_long',
  'name_too_long',
  'hyphen_at_label_edge',
] as const;
export type HostFault = (typeof HOST_FAULTS)[number];

/** Why a well-formed target is refused by name or port, before any look-up. */
export const HOST_DENIALS = [
  'ip_literal',
  'numeric_host',
  'not_listed',
  'port_not_listed',
  'empty_list',
  'unknown_backend',
  'no_ceiling_given',
] as const;
export type HostDenial = (typeof HOST_DENIALS)[number];

/** Why a resolved address is refused. */
export const ADDRESS_DENIALS = [
  'unparsable_address',
  'own_address',
  'unspecified_address',
  'loopback_address',
  'private_address',
  'shared_address',
  'link_local_address',
  'metadata_address',
  'multicast_address',
  'reserved_address',
  'documentation_address',
  'benchmark_address',
  'translated_address',
  'not_global_address',
] as const;
export type AddressDenial = (typeof ADDRESS_DENIALS)[number];

/** Why the head of a request is not an acceptable CONNECT. */
export const HEAD_FAULTS = [
  'not_http',
  'request_line_too_long',
  'header_line_too_long',
  'head_too_large',
  'too_many_headers',
  'bare_line_feed',
  'bare_carriage_return',
  'control_character',
  'bad_request_line',
  'bad_version',
  'method_not_connect',
  'plain_http',
  'missing_port',
  'bad_port',
  'bad_header',
  'folded_header',
  'missing_host',
  'repeated_host',
  'body_not_allowed',
  'truncated_head',
] as const;
export type HeadFault = (typeof HEAD_FAULTS)[number];

/** Why the first bytes of a tunnel are not a readable TLS ClientHello. */
export const HELLO_FAULTS = [
  'not_tls',
  'bad_record',
  'hello_too_large',
  'bad_hello',
  'repeated_extension',
  'bad_server_name',
  'truncated_hello',
] as const;
export type HelloFault = (typeof HELLO_FAULTS)[number];

/** Why a readable ClientHello is refused. */
export const SERVER_NAME_DENIALS = ['no_server_name', 'server_name_mismatch'] as const;
export type ServerNameDenial = (typeof SERVER_NAME_DENIALS)[number];

/** Why the operator's own proxy opens no tunnel, as its answer says. */
export const CHAIN_FAULTS = ['chain_auth_refused', 'chain_refused', 'chain_upstream_failed', 'chain_answer_invalid'] as const;
export type ChainFault = (typeof CHAIN_FAULTS)[number];

/** Why nothing more passes although the target is allowed: a budget of the operator's is used up. */
export const BUDGET_DENIALS = ['host_connections_spent', 'host_bytes_spent', 'turn_connections_spent', 'turn_bytes_spent'] as const;
export type BudgetDenial = (typeof BUDGET_DENIALS)[number];

/** Why an allow-list entry, a budget or an address rule is refused at load. */
export const CONFIG_FAULTS = [
  'empty_entry',
  'url_not_allowed',
  'path_not_allowed',
  'wildcard_not_allowed',
  'address_not_allowed',
  'bad_name',
  'too_broad',
  'bad_port',
  'bad_protocol',
  'protocol_needs_port',
  'bad_address_range',
  'range_too_broad',
  'too_many_entries',
  'bad_budget',
  'bad_proxy',
] as const;
export type ConfigFault = (typeof CONFIG_FAULTS)[number];

import type {
  AddressDenial,
  BudgetDenial,
  ChainFault,
  HeadFault,
  HelloFault,
  HostDenial,
  HostFault,
  ServerNameDenial,
} from '@firecrew/egress-policy';

/** Outcomes that only the proxy knows: time, sockets, capacity, the audit and the lease. */
export const PROXY_REASONS = [
  'head_timeout',
  'lookup_failed',
  'lookup_empty',
  'lookup_timeout',
  'too_many_addresses',
  'dial_failed',
  'dial_timeout',
  'chain_itself',
  'chain_unreachable',
  'chain_timeout',
  'chain_early_bytes',
  'chain_credential_unreadable',
  'audit_unavailable',
  'lease_lost',
  'policy_changed',
  'proxy_closed',
  'connections_busy',
  'tunnels_busy',
  'host_busy',
  'hello_timeout',
  'client_gone',
  'internal_error',
] as const;
export type ProxyReason = (typeof PROXY_REASONS)[number] | ChainFault;

/** How an open tunnel ended. */
export const END_REASONS = [
  'guest_closed',
  'upstream_closed',
  'guest_reset',
  'upstream_reset',
  'idle_timeout',
  'lease_lost',
  'policy_changed',
  'host_bytes_spent',
  'turn_bytes_spent',
  'proxy_closed',
] as const;
export type EndReason = (typeof END_REASONS)[number];

/** Why a connection is cut from outside. */
export type CancelReason = Extract<EndReason, 'lease_lost' | 'policy_changed' | 'proxy_closed'>;

/** Every reason a refusal can carry. */
export type RefusalReason = HostFault | HostDenial | AddressDenial | BudgetDenial | HeadFault | HelloFault | ServerNameDenial | ProxyReason;

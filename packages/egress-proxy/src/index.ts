export type { EgressAuditLine, EgressIds, EgressVerdict } from './audit-line.ts';
export { BudgetBook, type TunnelAccount } from './budget-book.ts';
export type { ChainOptions } from './chain/chain-dial.ts';
export { CHAIN_REASONS, ChainError, type ChainReason } from './chain/chain-reasons.ts';
export { type ChainSettings, makeChain } from './chain/make-chain.ts';
export { type OperatorTunnel, openOperatorTunnel } from './chain/open-operator-tunnel.ts';
export { CHAIN_CREDENTIAL_MAX_BYTES, type ChainCredentialSource, readChainCredential } from './chain/read-chain-credential.ts';
export { TunnelAgent, type TunnelTarget } from './chain/tunnel-agent.ts';
export { tunnelDispatcher } from './chain/tunnel-dispatcher.ts';
export type { EgressClock } from './connection.ts';
export { type Dial, type DialTarget, defaultDial } from './dial.ts';
export type { Via } from './find-way.ts';
export {
  ADDRESSES_MAX,
  AUDIT_TIMEOUT_MS,
  CHAIN_STAGGER_MS,
  CONNECTIONS_MAX,
  DIAL_STAGGER_MS,
  DIAL_TIMEOUT_MS,
  EGRESS_PROXY_LIMITS,
  type EgressProxyLimits,
  HEAD_TIMEOUT_MS,
  HELLO_TIMEOUT_MS,
  LINGER_BYTES,
  LINGER_MS,
  LOOKUP_TIMEOUT_MS,
  LOOKUPS_MAX,
  TUNNEL_IDLE_MS,
  TUNNELS_MAX,
  TUNNELS_PER_HOST_MAX,
} from './limits.ts';
export { listOwnAddresses } from './list-own-addresses.ts';
export { defaultResolve, type Resolve } from './look-up.ts';
export { createEgressProxy, type EgressProxy, type EgressProxyOptions, type EgressProxyStats } from './proxy.ts';
export { END_REASONS, type EndReason, PROXY_REASONS, type ProxyReason, type RefusalReason } from './reasons.ts';
export { refusalStatus } from './refusal.ts';
export { type ReachedTarget, type RefusedTarget, SummaryBook } from './summary.ts';

/** Bounds of one proxy, which serves one VM. Every field has a default below. */
export interface EgressProxyLimits {
  /** From the first moment of a connection to the end of its head. */
  readonly headMs: number;
  /** One look-up, the wait for a free slot included. */
  readonly lookupMs: number;
  /** Look-ups at once; the rest wait. */
  readonly lookups: number;
  /** All attempts at the addresses of one host together. */
  readonly dialMs: number;
  /** From one attempt to the next address while none has ended; those under way go on. */
  readonly dialStaggerMs: number;
  /** The same through the operator's proxy, which has a dial of its own to make for each. */
  readonly chainStaggerMs: number;
  /** From the 200 to the end of the ClientHello. */
  readonly helloMs: number;
  /** An open tunnel without a byte in either direction. */
  readonly idleMs: number;
  /** One audit line. */
  readonly auditMs: number;
  /** How long a refused guest may take to finish sending and to read the answer. */
  readonly lingerMs: number;
  /** How many bytes of a refused guest are read and thrown away. */
  readonly lingerBytes: number;
  /** Connections in any state. */
  readonly connections: number;
  /** Tunnels open or being opened. */
  readonly tunnels: number;
  /** The same for one host. */
  readonly tunnelsPerHost: number;
  /** Addresses accepted in one answer of the resolver. */
  readonly addresses: number;
}

export const HEAD_TIMEOUT_MS = 10_000;
export const LOOKUP_TIMEOUT_MS = 10_000;
/** `dns.lookup` runs on the pool of four threads that file access uses too; two stay free. */
export const LOOKUPS_MAX = 2;
export const DIAL_TIMEOUT_MS = 10_000;
/** The delay that RFC 8305, section 5, recommends. */
export const DIAL_STAGGER_MS = 250;
export const CHAIN_STAGGER_MS = 1_000;
export const HELLO_TIMEOUT_MS = 10_000;
/** Models think for minutes without a byte. */
export const TUNNEL_IDLE_MS = 3_600_000;
export const AUDIT_TIMEOUT_MS = 10_000;
export const LINGER_MS = 1_000;
export const LINGER_BYTES = 262_144;
export const CONNECTIONS_MAX = 1_024;
export const TUNNELS_MAX = 512;
export const TUNNELS_PER_HOST_MAX = 256;
export const ADDRESSES_MAX = 256;

export const EGRESS_PROXY_LIMITS: EgressProxyLimits = {
  headMs: HEAD_TIMEOUT_MS,
  lookupMs: LOOKUP_TIMEOUT_MS,
  lookups: LOOKUPS_MAX,
  dialMs: DIAL_TIMEOUT_MS,
  dialStaggerMs: DIAL_STAGGER_MS,
  chainStaggerMs: CHAIN_STAGGER_MS,
  helloMs: HELLO_TIMEOUT_MS,
  idleMs: TUNNEL_IDLE_MS,
  auditMs: AUDIT_TIMEOUT_MS,
  lingerMs: LINGER_MS,
  lingerBytes: LINGER_BYTES,
  connections: CONNECTIONS_MAX,
  tunnels: TUNNELS_MAX,
  tunnelsPerHost: TUNNELS_PER_HOST_MAX,
  addresses: ADDRESSES_MAX,
};

import type { BlobStore, Database, PostgresMissionStore } from '@firecrew/store';
import type { Logger } from 'pino';
import type { ServerConfig } from './config.ts';
import type { DeliveryDesk } from './delivery/deliver-phase.ts';
import type { RepositoryCache } from './delivery/repository-cache.ts';
import type { AttemptTokens } from './http/auth.ts';
import type { ChangeFeed } from './http/change-feed.ts';
import type { NodeRegistry } from './nodes/node-registry.ts';
import type { OwnAddresses } from './nodes/own-addresses.ts';
import type { EgressCounters } from './policy/egress-counters.ts';
import type { PolicyDesk } from './policy/policy-desk.ts';

/** What the parts of a running server share. */
export interface ServerContext {
  readonly config: ServerConfig;
  readonly log: Logger;
  readonly db: Database;
  readonly store: PostgresMissionStore;
  readonly blobs: BlobStore;
  readonly tokens: AttemptTokens;
  readonly nodes: NodeRegistry;
  readonly feed: ChangeFeed;
  readonly repositories: RepositoryCache;
  readonly deliveries: DeliveryDesk;
  readonly policy: PolicyDesk;
  readonly egress: EgressCounters;
  readonly ownAddresses: OwnAddresses;
  readonly epoch: number;
  readonly version: string;
  /** Monotonic time in `ms`. */
  readonly clock: () => number;
  /** Asks for a mission to be driven soon. */
  readonly wake: (missionId: string) => Promise<void>;
}

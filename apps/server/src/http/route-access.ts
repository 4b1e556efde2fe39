import { CodedError } from '@firecrew/base';

/** Whom a route is for. `open` needs no token of a caller; `node` has tokens of its own; the others are callers, each with those after it. */
export type RouteAccess = 'open' | 'node' | 'seat' | 'member' | 'operator';

/**
 * Every route of the API with whom it is for. A server does not start with one that is not here, so that nobody is let in by an oversight.
 * `seat` lets seats in beside members and operators, to missions of their own alone (`ownMission`).
 */
export const ROUTE_ACCESS: Readonly<Record<string, RouteAccess>> = {
  'GET /healthz': 'open',
  'GET /readyz': 'open',
  'GET /metrics': 'member',
  'GET /v1/info': 'seat',
  'GET /v1/openapi.json': 'seat',
  'GET /v1/whoami': 'seat',
  'POST /v1/uploads': 'seat',
  'POST /v1/missions': 'seat',
  'GET /v1/missions': 'seat',
  'GET /v1/missions/:id': 'seat',
  'GET /v1/missions/:id/events': 'seat',
  'GET /v1/missions/:id/logs': 'seat',
  'GET /v1/missions/:id/pack': 'seat',
  'GET /v1/missions/:id/archive': 'seat',
  'GET /v1/missions/:id/artifacts': 'seat',
  'GET /v1/missions/:id/artifacts/:artifact': 'seat',
  'POST /v1/policy/ask': 'seat',
  'GET /v1/missions/:id/policy': 'seat',
  'GET /v1/missions/:id/policy/check': 'seat',
  'POST /v1/missions/:id/cancel': 'member',
  'POST /v1/missions/:id/retry': 'member',
  'POST /v1/missions/:id/approve': 'member',
  'GET /v1/seats': 'member',
  'GET /v1/seats/:id': 'member',
  'POST /v1/seats': 'operator',
  'POST /v1/seats/:id/unlink': 'operator',
  'POST /v1/seats/:id/keys': 'operator',
  'POST /v1/seat-keys/:id/revoke': 'operator',
  'GET /v1/backends': 'member',
  'GET /v1/fleet': 'member',
  'POST /v1/join-tokens': 'operator',
  'POST /v1/nodes/:id/drain': 'operator',
  // A join token in the body.
  'POST /v1/node/join': 'open',
  'GET /v1/node/images': 'node',
  'GET /v1/node/images/:wanted': 'node',
  'GET /v1/node/images/:id/files/:digest': 'node',
  'GET /v1/node/turns/:turn/:attempt/blobs/:digest': 'node',
  'PUT /v1/node/turns/:turn/:attempt/blobs/:digest': 'node',
  'POST /v1/node/turns/:turn/:attempt/log': 'node',
};

const RANK = { seat: 0, member: 1, operator: 2 } as const;

/** Whether a caller's role may use a route. One that is not listed is for nobody. */
export function mayUse(role: keyof typeof RANK, route: RouteAccess | undefined): boolean {
  return route !== undefined && route !== 'open' && route !== 'node' && RANK[role] >= RANK[route];
}

/** Whom the route of a request is for; the answer to HEAD is that of GET. */
export function accessOf(method: string, path: string | undefined): RouteAccess | undefined {
  return ROUTE_ACCESS[`${method === 'HEAD' ? 'GET' : method} ${path ?? ''}`];
}

/** Throws `route_undecided` for a route that is not in {@link ROUTE_ACCESS}. */
export function demandDecision(methods: string | readonly string[], path: string): void {
  for (const method of typeof methods === 'string' ? [methods] : methods) {
    if (method === 'OPTIONS' || accessOf(method, path) !== undefined) continue;
    throw new CodedError('route_undecided', `nothing says whom ${method} ${path} is for`, { action: 'Add it to ROUTE_ACCESS.' });
  }
}

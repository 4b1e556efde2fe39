import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accessOf, demandDecision, mayUse, ROUTE_ACCESS, type RouteAccess } from '../../src/http/route-access.ts';
import { startTestServer, type TestServer } from '../support/running-server.ts';

const MISSION = { title: 'T', repository: { kind: 'none' }, phases: [{ kind: 'research', task: 'look' }], agent: { command: 'true' } };
const codeOf = (body: unknown) => (body as { error?: { code?: string } }).error?.code;

describe('who may use a route', () => {
  it.each<[RouteAccess | undefined, string]>([
    ['seat', 'seat member operator'],
    ['member', 'member operator'],
    ['operator', 'operator'],
    ['open', ''],
    ['node', ''],
    [undefined, ''],
  ])('%s: %s', (access, who) => {
    const roles = (['seat', 'member', 'operator'] as const).filter((role) => mayUse(role, access));
    expect(roles.join(' ')).toBe(who);
  });

  it('is asked of HEAD as of GET', () => expect(accessOf('HEAD', '/v1/seats')).toBe('member'));

  it('must be said of every route', () => {
    expect(() => demandDecision('GET', '/v1/new')).toThrow(expect.objectContaining({ code: 'route_undecided' }));
    expect(() => demandDecision(['GET', 'PATCH'], '/v1/seats')).toThrow('PATCH /v1/seats');
    expect(() => demandDecision(['GET', 'HEAD', 'POST'], '/v1/seats')).not.toThrow();
  });
});

describe("a seat's key, on every route of the API", () => {
  let server: TestServer;
  let key: string;
  let own: string;
  let others: string;
  beforeAll(async () => {
    server = await startTestServer();
    const seat = async (role: string) => {
      const linked = (await server.call('POST', '/v1/seats', { json: { role } })).body as { id: string };
      const minted = await server.call('POST', `/v1/seats/${linked.id}/keys`, { json: { name: 'test' } });
      return (minted.body as { key: string }).key;
    };
    const create = async (token: string) =>
      ((await server.call('POST', '/v1/missions', { token, json: MISSION })).body as { id: string }).id;
    key = await seat('coder');
    own = await create(key);
    others = await create(await seat('writer'));
  });
  afterAll(() => server.stop());

  /** Bodies that are well formed, where a route has one: what is refused is then the caller. */
  const BODIES: Readonly<Record<string, unknown>> = {
    'POST /v1/seats': { role: 'tester' },
    'POST /v1/seats/:id/keys': { name: 'x' },
    'POST /v1/nodes/:id/drain': { draining: true },
  };
  const QUERIES: Readonly<Record<string, string>> = { 'GET /v1/missions/:id/policy/check': '?host=api.example.com' };
  const fill = (path: string, id: string) => path.replace(':id', id).replace(/:[a-z]+/g, 'x');
  const call = async (route: string, id: string) => {
    const [method = '', path = ''] = route.split(' ');
    const { status, body } = await server.call(method, `${fill(path, id)}${QUERIES[route] ?? ''}`, {
      token: key,
      ...(method === 'GET' ? {} : { json: BODIES[route] ?? {} }),
    });
    return { status, code: codeOf(body) };
  };
  const routesFor = (...access: RouteAccess[]) =>
    Object.keys(ROUTE_ACCESS).filter((route) => access.includes(ROUTE_ACCESS[route] ?? 'open'));

  it.each(routesFor('member', 'operator'))('%s is forbidden', async (route) => {
    expect(await call(route, own)).toEqual({ status: 403, code: 'forbidden' });
  });

  it.each(routesFor('node'))('%s takes it for no node', async (route) => {
    const { status } = await call(route, 'a'.repeat(64));
    expect([400, 401]).toContain(status);
  });

  it.each(routesFor('seat').filter((route) => route.includes('/missions/:id')))('%s finds no mission of another seat', async (route) => {
    expect(await call(route, others)).toEqual({ status: 404, code: 'mission_not_found' });
  });

  it.each(routesFor('seat').filter((route) => route.startsWith('GET') && !/pack|:artifact/.test(route)))(
    '%s answers of its own',
    async (route) => {
      // Streams of a mission that lives would not end.
      expect((await call(route, own)).status).toBe(200);
    },
  );

  it('lists the missions of its seat alone, which name it', async () => {
    const { body } = await server.call('GET', '/v1/missions', { token: key });
    expect((body as { missions: unknown[] }).missions).toEqual([
      expect.objectContaining({ id: own, seat: expect.objectContaining({ role: 'coder' }) }),
    ]);
    const events = (await server.call('GET', `/v1/missions/${own}/events`, { token: key })).body as { events: { body: unknown }[] };
    expect(events.events[0]?.body).toMatchObject({ kind: 'mission.created', seat: { role: 'coder' } });
  });

  it('is refused addresses that are not public', async () => {
    const json = { ...MISSION, egress: { addressRules: [{ host: 'intern.example', addresses: ['10.0.0.1'] }] } };
    expect(await server.call('POST', '/v1/missions', { token: key, json })).toMatchObject({ status: 403 });
  });
});

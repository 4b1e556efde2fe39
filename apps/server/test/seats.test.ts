import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PLACE_BATCH } from '../src/driver/place-turns.ts';
import { postTo, until } from './support/ask.ts';
import { FakeNode, keyOf } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';
import { leaseSettings } from './support/short-lease.ts';
import { uploadRepository } from './support/upload-repository.ts';

const { settings, inShortLease } = leaseSettings();
const FILES = { 'a.txt': 'one\n' };

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode | undefined;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer(settings(), databases);
});
afterEach(async () => {
  node?.close();
  node = undefined;
  await server.stop();
});

interface Seat {
  readonly id: string;
  readonly linked: boolean;
  readonly maxTurns: number;
  readonly turns: number;
  readonly keys: readonly { readonly id: string }[];
}
interface Key {
  readonly key: string;
  readonly keyId: string;
}
interface View {
  readonly id: string;
  readonly state: string;
  readonly waiting: string | null;
  readonly seat: { readonly id: string; readonly role: string; readonly keyId: string } | null;
  readonly phases: readonly { readonly attempts: readonly { readonly outcome: unknown; readonly detail: string }[] }[];
}

const post = <T>(path: string, json: unknown, token?: string) => postTo<T>(server, path, json, token);
const link = (role: string, maxTurns?: number) => post<Seat>('/v1/seats', { role, ...(maxTurns === undefined ? {} : { maxTurns }) });
const mint = (seat: Seat) => post<Key>(`/v1/seats/${seat.id}/keys`, { name: 'a test' });
const codeOf = (body: unknown) => (body as { error?: { code?: string } }).error?.code;
const seats = async () => ((await server.call('GET', '/v1/seats')).body as { seats: Seat[] }).seats;
const view = async (id: string) => (await server.call('GET', `/v1/missions/${id}`)).body as View;

async function create(token: string): Promise<string> {
  const repository = await uploadRepository(server, FILES);
  const phases = [{ kind: 'coding', task: 'x' }];
  const json = { title: 'Change it', repository, phases, agent: { command: 'true' }, allowUnisolated: true };
  return (await post<View>('/v1/missions', json, token)).id;
}

async function notices(id: string): Promise<readonly string[]> {
  const { body } = await server.call('GET', `/v1/missions/${id}/events`);
  return (body as { events: { body: { kind: string; code?: string } }[] }).events.flatMap((event) =>
    event.body.kind === 'notice' && event.body.code !== undefined ? [event.body.code] : [],
  );
}

describe('a seat', () => {
  it('is one for its role, however often it is linked, and keeps its number of turns where none is said', async () => {
    const first = await link('coder', 3);
    const again = await link('coder');
    expect([again.id, again.maxTurns, (await seats()).length]).toEqual([first.id, 3, 1]);
  });

  it('gives keys that are stored as hashes alone, each revoked once', async () => {
    const seat = await link('coder');
    const { key, keyId } = await mint(seat);
    expect(JSON.stringify(await server.query('select * from api_tokens'))).not.toContain(key);
    expect((await server.call('GET', '/v1/whoami', { token: key })).body).toMatchObject({
      role: 'seat',
      tokenId: keyId,
      seat: { id: seat.id, role: 'coder' },
      mayManageSeats: false,
    });
    expect((await seats())[0]?.keys).toMatchObject([{ id: keyId }]);
    await post(`/v1/seat-keys/${keyId}/revoke`, {});
    expect((await server.call('GET', '/v1/whoami', { token: key })).status).toBe(401);
    const twice = await server.call('POST', `/v1/seat-keys/${keyId}/revoke`, { json: {} });
    expect([twice.status, codeOf(twice.body)]).toEqual([404, 'seat_key_not_found']);
  });

  it('that is unlinked loses its keys for good, and takes new ones once it is linked again', async () => {
    const seat = await link('coder');
    const { key } = await mint(seat);
    await post(`/v1/seats/${seat.id}/unlink`, {});
    expect((await server.call('GET', '/v1/whoami', { token: key })).status).toBe(401);
    const refused = await server.call('POST', `/v1/seats/${seat.id}/keys`, { json: { name: 'x' } });
    expect([refused.status, codeOf(refused.body)]).toEqual([409, 'seat_unlinked']);
    await link('coder');
    expect((await server.call('GET', '/v1/whoami', { token: key })).status).toBe(401);
    expect((await server.call('GET', '/v1/whoami', { token: (await mint(seat)).key })).status).toBe(200);
  });

  it("of another workspace is not found, and neither is its key, and an operator's token is no seat key", async () => {
    const seat = await link('coder');
    const { keyId } = await mint(seat);
    const token = await server.addCaller('operator', false);
    const call = async (path: string) => (await server.call('POST', path, { token, json: { name: 'x' } })).status;
    expect(await call(`/v1/seats/${seat.id}/keys`)).toBe(404);
    expect((await server.call('POST', `/v1/seats/${seat.id}/unlink`, { token })).status).toBe(404);
    expect((await server.call('POST', `/v1/seat-keys/${keyId}/revoke`, { token, json: {} })).status).toBe(404);
    const { tokenId } = (await server.call('GET', '/v1/whoami')).body as { tokenId: string };
    expect((await server.call('POST', `/v1/seat-keys/${tokenId}/revoke`, { json: {} })).status).toBe(404);
  });
});

describe('turns of a seat', () => {
  it('run as many at once as it allows; another waits as seat_busy, holds back nobody, and runs once one has ended', async () => {
    const { key } = await mint(await link('coder', 1));
    node = await FakeNode.connect(server);
    const first = await create(key);
    const start = await node.accept();
    const second = await create(key);
    await until(
      () => view(second),
      (now) => now.waiting?.startsWith('seat_busy: ') === true,
    );
    expect((await seats())[0]).toMatchObject({ turns: 1, maxTurns: 1 });
    const third = await create(server.token);
    const free = await node.accept();
    await node.finish(free, { ...FILES, 'b.txt': 'b\n' });
    await node.finish(start, { ...FILES, 'b.txt': 'b\n' });
    const next = await node.accept();
    await node.finish(next, { ...FILES, 'b.txt': 'b\n' });
    for (const id of [first, second, third])
      await until(
        () => view(id),
        (now) => now.state === 'completed',
      );
    const { artifacts } = (await server.call('GET', `/v1/missions/${second}/artifacts`)).body as {
      artifacts: { id: string; name: string }[];
    };
    const record = artifacts.find((artifact) => artifact.name === 'record.json');
    expect((await server.call('GET', `/v1/missions/${second}/artifacts/${record?.id}`)).body).toMatchObject({ seat: { role: 'coder' } });
    expect((await view(third)).seat).toBeNull();
  });
});

describe('the lease of a seat', () => {
  it('ends by time: a turn runs no longer than it, and no longer than the mission wants', async () => {
    const seat = await post<Seat>('/v1/seats', { role: 'coder', maxTurns: 3, leaseMs: 60_000 });
    const { key } = await mint(seat);
    node = await FakeNode.connect(server);
    const limits = async (turnTimeoutMs?: number) => {
      const phases = [{ kind: 'research', task: 'x', allowEmpty: true }];
      const more = turnTimeoutMs === undefined ? {} : { turnTimeoutMs };
      await post(
        '/v1/missions',
        { title: 'T', repository: { kind: 'none' }, phases, agent: { command: 'true' }, allowUnisolated: true, ...more },
        key,
      );
      return (await node?.accept())?.spec.limits.turnTimeoutMs;
    };
    expect([await limits(), await limits(30_000)]).toEqual([60_000, 30_000]);
    await post('/v1/seats', { role: 'coder', leaseMs: null });
    expect(await limits(90_000)).toBe(90_000);
    for (const leaseMs of [0, 8 * 24 * 3_600_000])
      expect((await server.call('POST', '/v1/seats', { json: { role: 'coder', leaseMs } })).status).toBe(400);
  });
});

describe('many turns of a busy seat', () => {
  it('keep no other turn from being placed, however many there are', async () => {
    const { key } = await mint(await link('coder', 1));
    node = await FakeNode.connect(server);
    await create(key);
    await node.accept();
    const waiting = await create(key);
    await until(
      () => view(waiting),
      (now) => now.waiting?.startsWith('seat_busy: ') === true,
    );
    await server.query(`insert into turns (id, mission_id, phase_id, run_id, step, graph_node, state, ordinal)
      select 'trn_' || lpad(n::text, 16, '0'), mission_id, phase_id, run_id, step, graph_node, state, ordinal + n
      from turns, generate_series(1, ${PLACE_BATCH + 100}) n where mission_id = '${waiting}'`);
    await create(server.token);
    const free = await node.accept();
    expect(free.spec.missionId).not.toBe(waiting);
  });
});

describe('a key that is revoked while its turn runs', () => {
  describe('on a node that says nothing more', () => {
    inShortLease();

    it('has the turn called off at once, is not renewed and not declared lost, and the turn ends as seat_revoked', async () => {
      const { key, keyId } = await mint(await link('coder'));
      node = await FakeNode.connect(server);
      const id = await create(key);
      const start = await node.accept();
      await until(
        () => server.query("select 1 from attempts where state = 'accepted'"),
        (rows) => rows.length === 1,
      );
      const renew = async (renewal: number) => {
        node?.send({ t: 'lease.renew', id: renewal, turns: [keyOf(start.spec)] });
        return await node?.next('lease.ack');
      };
      expect(await renew(1)).toMatchObject({ renewed: [keyOf(start.spec)], lost: [] });
      expect(await post(`/v1/seat-keys/${keyId}/revoke`, {})).toEqual({ id: keyId, missions: [id] });
      expect(await node.next('turn.cancel')).toMatchObject({ ...keyOf(start.spec), reason: 'cancelled' });
      expect(await renew(2)).toMatchObject({ renewed: [], lost: [] });
      // The node says nothing more: at the end of the term the server gives the attempt up.
      const ended = await until(
        () => view(id),
        (now) => now.state === 'cancelled',
      );
      expect(ended.phases[0]?.attempts[0]?.detail).toContain(`seat_revoked: the key ${keyId} of its seat was revoked`);
      expect(ended.phases[0]?.attempts).toHaveLength(1);
      expect(await notices(id)).toContain('seat_revoked');
    });
  });

  it('hands its missions to a key of the same seat that succeeds it, and to no other', async () => {
    const seat = await link('coder');
    const old = await mint(seat);
    const next = await mint(seat);
    const stranger = await mint(await link('writer'));
    node = await FakeNode.connect(server);
    const id = await create(old.key);
    const start = await node.accept();
    const refused = await server.call('POST', `/v1/seat-keys/${old.keyId}/revoke`, { json: { successor: stranger.keyId } });
    expect([refused.status, codeOf(refused.body)]).toEqual([400, 'bad_request']);
    expect(await post(`/v1/seat-keys/${old.keyId}/revoke`, { successor: next.keyId })).toEqual({ id: old.keyId, missions: [] });
    expect((await view(id)).seat).toMatchObject({ id: seat.id, keyId: next.keyId });
    await post(`/v1/seat-keys/${next.keyId}/revoke`, {});
    expect(await node.next('turn.cancel')).toMatchObject(keyOf(start.spec));
  });

  it('ends a mission that waits, and lets none of its missions be retried', async () => {
    const seat = await link('coder');
    const { key } = await mint(seat);
    node = await FakeNode.connect(server);
    const failed = await create(key);
    const start = await node.accept();
    await node.finish(start, FILES, { outcome: { kind: 'setup_failed' }, verification: 'none' });
    await until(
      () => view(failed),
      (now) => now.state === 'failed',
    );
    node.close();
    const waiting = await create(key);
    const { missions } = await post<{ missions: string[] }>(`/v1/seats/${seat.id}/unlink`, {});
    expect(missions).toEqual([waiting]);
    const ended = await until(
      () => view(waiting),
      (now) => now.state === 'cancelled',
    );
    expect(ended.phases[0]?.attempts.map((attempt) => attempt.detail).join()).not.toContain('completed');
    const retried = await server.call('POST', `/v1/missions/${failed}/retry`, { json: {} });
    expect([retried.status, codeOf(retried.body)]).toEqual([409, 'seat_revoked']);
    expect((await view(failed)).state).toBe('failed');
  });

  it('makes no mission after that, whichever of the two comes first', async () => {
    const seat = await link('coder');
    for (let round = 0; round < 4; round += 1) {
      const { key, keyId } = await mint(seat);
      const json = { title: 'T', repository: { kind: 'none' }, phases: [{ kind: 'research', task: 'x' }], agent: { command: 'true' } };
      const made = Array.from({ length: 4 }, () => server.call('POST', '/v1/missions', { token: key, json }));
      await post(`/v1/seat-keys/${keyId}/revoke`, {});
      const replies = await Promise.all(made);
      for (const { status, body } of replies) {
        expect([201, 401, 409]).toContain(status);
        if (status === 201) expect((await view((body as View).id)).state).toBe('cancelled');
      }
    }
    expect(await server.query("select id from missions where state in ('draft', 'running')")).toEqual([]);
  });
});

import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postTo } from './support/ask.ts';
import { FakeNode } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer({}, databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  node.close();
  await server.stop();
});

interface Key {
  readonly key: string;
  readonly keyId: string;
}

const post = <T>(path: string, json: unknown, token?: string) => postTo<T>(server, path, json, token);

/** A mission of a seat whose turn runs, the keys of that seat, and a way to open a stream of the mission. */
async function running() {
  const seat = await post<{ id: string }>('/v1/seats', { role: 'coder' });
  const mint = () => post<Key>(`/v1/seats/${seat.id}/keys`, { name: 'a test' });
  const [key, next] = [await mint(), await mint()];
  const phases = [{ kind: 'research', task: 'x', allowEmpty: true }];
  const json = { title: 'T', repository: { kind: 'none' }, phases, agent: { command: 'true' }, allowUnisolated: true };
  const { id } = await post<{ id: string }>('/v1/missions', json, key.key);
  const start = await node.accept();
  const open = async (what: string, token: string) => {
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' };
    const stream = await fetch(`${server.url}/v1/missions/${id}/${what}`, { headers });
    if (!stream.ok || stream.body === null) throw new Error(`the stream was answered with ${stream.status}`);
    return stream.body.pipeThrough(new TextDecoderStream()).getReader();
  };
  return { id, seat, key, next, start, open };
}

/** All that a stream says from now on until the server closes it. */
async function restOf(reader: ReadableStreamDefaultReader<string>): Promise<string> {
  let text = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  return text;
}

describe('a stream that was opened with a key', () => {
  it.each(['events', 'logs'])(
    'of %s ends when the key is exchanged, tells nothing that comes after, and goes on under the new key',
    async (what) => {
      const { id, key, next, start, open } = await running();
      const reader = await open(what, key.key);
      await post(`/v1/seat-keys/${key.keyId}/revoke`, { successor: next.keyId });
      node.report(start.spec, 1, { kind: 'notice', level: 'info', code: 'said_after_the_revocation', message: 'x' });
      const rest = await restOf(reader);
      expect(rest).not.toContain('said_after_the_revocation');
      // The mission lives on: nobody is told that it has ended.
      expect(rest).not.toContain('event: done');
      await expect(open(what, key.key)).rejects.toThrow('401');
      expect((await server.call('GET', `/v1/missions/${id}`)).body).toMatchObject({ state: 'running' });
      const newer = await open('events', next.key);
      let seen = '';
      while (!seen.includes('said_after_the_revocation')) seen += (await newer.read()).value ?? '';
      await newer.cancel();
    },
  );

  it('ends when its seat is unlinked', async () => {
    const { seat, key, open } = await running();
    const reader = await open('events', key.key);
    await post(`/v1/seats/${seat.id}/unlink`, {});
    expect(await restOf(reader)).not.toContain('event: done');
  });

  it('of a member ends with its token as well', async () => {
    const { open } = await running();
    const token = await server.addCaller('member', true);
    const reader = await open('events', token);
    await server.query("update api_tokens set revoked_at = now() where role = 'member'");
    expect(await restOf(reader)).not.toContain('event: done');
  });
});

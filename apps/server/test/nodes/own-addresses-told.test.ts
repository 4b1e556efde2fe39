import { startTestDatabase } from '@firecrew/store/testing';
import { expect, it } from 'vitest';
import { FakeNode } from '../support/fake-node.ts';
import { startTestServer } from '../support/running-server.ts';

it('tells a node the addresses of server and database with each attempt', async () => {
  const databases = await startTestDatabase();
  const server = await startTestServer({}, databases);
  const node = await FakeNode.connect(server);
  try {
    const json = {
      title: 'Look around',
      repository: { kind: 'none' },
      phases: [{ kind: 'research', task: 'x' }],
      agent: { command: 'true' },
      allowUnisolated: true,
    };
    await server.call('POST', '/v1/missions', { json });
    expect((await node.accept()).ownAddresses).toEqual(expect.arrayContaining(['127.0.0.1']));
  } finally {
    node.close();
    await server.stop();
    await databases.stop();
  }
});

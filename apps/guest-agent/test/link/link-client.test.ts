import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LinkListener } from '@firecrew/link';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentConfig } from '../../src/agent-config.ts';
import { LinkClient } from '../../src/link/link-client.ts';

const ALONE_MS = 200;

describe('the link of an agent', () => {
  let folder: string;
  let config: AgentConfig;
  const clients: LinkClient[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-link-'));
    config = { generation: 1, secret: randomBytes(32), resync: false, socketPath: join(folder, 's') } as AgentConfig;
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** Takes one session, and is gone then with its socket. */
  async function hostOfOneSession(): Promise<void> {
    const { secret, generation, socketPath } = config;
    const server = createServer();
    const gone = new Promise<void>((resolve) => {
      const onSession = (): void => {
        server.close(() => resolve());
        void listener.close();
      };
      const listener = new LinkListener({ secret, generation, onSession, onRefused: () => undefined, onStream: () => undefined });
      server.on('connection', (socket) => listener.accept(socket));
    });
    await once(server.listen(socketPath), 'listening');
    await gone;
  }

  function start(aloneMs: number | null, note: (text: string) => void): Promise<unknown> {
    const client = new LinkClient({ ...config, aloneMs }, { onStream: () => undefined, note });
    clients.push(client);
    return client.run().then(
      () => 'closed',
      (error: unknown) => error,
    );
  }

  it('is given up when the host stays away for longer than an agent may be alone', async () => {
    const host = hostOfOneSession();
    const end = start(ALONE_MS, () => undefined);
    await host;
    expect(await end).toMatchObject({ code: 'host_gone' });
  });

  it('is dialled for ever where nothing bounds that', async () => {
    const host = hostOfOneSession();
    let failures = 0;
    const away = new Promise<void>((resolve) => {
      // Pauses double from 50 ms: the fifth comes well after the bound of the other test.
      void start(null, (text) => {
        if (text.startsWith('dial failed') && ++failures === 5) resolve();
      });
    });
    await host;
    await away;
    const again = hostOfOneSession();
    await again;
  });
});

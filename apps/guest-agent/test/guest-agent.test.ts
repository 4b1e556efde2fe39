import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LinkListener, type LinkSession } from '@firecrew/link';
import { GENERATION, healthReplySchema } from '@firecrew/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentConfig } from '../src/agent-config.ts';
import { GuestAgent } from '../src/guest-agent.ts';

let folder: string;
let close: () => Promise<unknown>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-agent-'));
});
afterEach(async () => {
  await close();
  await rm(folder, { recursive: true, force: true });
});

/** An agent that makes `madeFolder` before it serves, how its run ends, and the first session that its host has of it. */
async function start(madeFolder: string) {
  const place = { generation: GENERATION, secret: randomBytes(32), resync: false, socketPath: join(folder, 's') };
  const made = { ports: { proxy: 0, model: 0 }, folders: [madeFolder], stateFolder: join(folder, 'state'), user: null, etc: {} };
  // cast: what of a configuration an agent without execs reads
  const agent = new GuestAgent({ ...place, ...made, environment: {}, aloneMs: null } as unknown as AgentConfig, () => undefined);
  const first = Promise.withResolvers<LinkSession>();
  const listener = new LinkListener({ ...place, onSession: first.resolve, onRefused: () => undefined, onStream: () => undefined });
  const server = createServer((socket) => listener.accept(socket));
  await once(server.listen(place.socketPath), 'listening');
  close = async () => {
    server.close();
    await listener.close();
  };
  const ended = agent.run().then(
    () => 'served',
    (error: unknown) => error,
  );
  return { agent, ended, session: await first.promise };
}

describe('a guest agent', () => {
  it('answers what its host asked before it was ready', async () => {
    const { agent, ended, session } = await start(join(folder, 'made'));
    const stream = session.open({ t: 'health' });
    stream.resume().end();
    expect(healthReplySchema.parse(await stream.peerHead)).toMatchObject({ ok: true, execs: 0 });
    await agent.close();
    expect(await ended).toBe('served');
  });

  it('that cannot make the guest ready ends, though its link is up', async () => {
    await writeFile(join(folder, 'file'), '');
    const { ended, session } = await start(join(folder, 'file', 'below'));
    expect(session).toBeDefined();
    expect(await ended).toMatchObject({ code: expect.stringMatching(/^(ENOTDIR|EEXIST)$/) });
  });
});

import { join } from 'node:path';
import type { MintedSeatKey } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { processesOfAttempt, sendSignal } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'a.txt': 'a\n' };
const LEASE = { ttlMs: 4_000, renewEveryMs: 500 };

/** An agent that has work to bring back, and sends without a pause until its tunnel is cut. */
const agent = (word: string): string => `echo half > half.txt; say ${word}; stream beat; sleep 3600`;

describe('a seat whose key is revoked', () => {
  let installation: Installation;
  let seatId: string;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap: 'auto', lease: LEASE });
    seatId = (await installation.client.linkSeat('coder', { maxTurns: 2 })).id;
  });
  afterAll(async () => await installation.stop());

  /**
   * A mission of the seat whose agent reaches the witness. Addresses that are not public are for an operator alone, so an operator makes it and
   * it is given to the seat.
   */
  async function startOfSeat(word: string): Promise<{ id: string; repository: string; minted: MintedSeatKey; asSeat: FirecrewClient }> {
    const { client } = installation;
    const minted = await client.mintSeatKey(seatId, word);
    const repository = await makeRepository(join(installation.home, 'scratch', word), FILES);
    const { id } = await installation.startMission({ repository, agent: agent(word) });
    await installation.query('update missions set seat_id = $1, seat_key_id = $2 where id = $3', [seatId, minted.keyId, id]);
    await installation.witness.waitFor(word);
    await until('an open tunnel', () => installation.witness.connections > 0);
    return { id, repository, minted, asSeat: installation.clientOf(minted.key) };
  }

  it('is refused at once; its running turn is cut off and ends with the reason, and its work comes back', async () => {
    const { id, repository, minted, asSeat } = await startOfSeat('first');
    expect(await asSeat.whoami()).toMatchObject({ role: 'seat', seat: { id: seatId } });
    expect((await asSeat.mission(id)).seat).toEqual({ id: seatId, role: 'coder', keyId: minted.keyId });
    expect(await installation.client.revokeSeatKey(minted.keyId)).toEqual({ id: minted.keyId, missions: [id] });
    await expect(asSeat.whoami()).rejects.toMatchObject({ code: 'unauthorized', status: 401 });
    await until('no tunnel', () => installation.witness.connections === 0);
    const { end, phases } = await installation.ended(id);
    expect(end).toMatchObject({ missionState: 'cancelled', exitCode: 3, outcome: { kind: 'cancelled' } });
    expect(end.detail).toBe(`seat_revoked: the key ${minted.keyId} of its seat was revoked`);
    expect(phases[0]?.attempts.map((attempt) => attempt.outcome)).toEqual([{ kind: 'cancelled' }]);
    expect(await installation.events(id)).toContainEqual(expect.objectContaining({ kind: 'notice', code: 'seat_revoked' }));
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(await filesAt(repository, delivered.commit)).toEqual({ ...FILES, 'half.txt': 'half\n' });
  });

  it('ends its turn also on a node that hears nothing of it: the lease is not renewed, and what it holds is stopped', async () => {
    const { id, minted } = await startOfSeat('second');
    const { marker } = await installation.attempt(id);
    sendSignal(installation.node.pid, 'SIGSTOP');
    try {
      await installation.client.revokeSeatKey(minted.keyId);
      const { end, phases } = await installation.ended(id);
      expect(end).toMatchObject({ missionState: 'cancelled' });
      expect(end.detail).toContain('seat_revoked: ');
      // Lost to the server, and not tried again.
      expect(phases[0]?.attempts.map((attempt) => attempt.outcome)).toEqual([{ kind: 'lost', reason: 'node_lost' }]);
      await until('no tunnel', () => installation.witness.connections === 0);
      await until('no process of the attempt', () => processesOfAttempt(marker).length === 0);
    } finally {
      sendSignal(installation.node.pid, 'SIGCONT');
    }
  });
});

import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { joinSessions, openSocketYard, type SocketYard } from './support/pair.ts';

let yard: SocketYard;
beforeAll(async () => {
  yard = await openSocketYard();
});
afterAll(() => yard.close());

it('carries heads and bytes both ways from either side', async () => {
  const { guest, host } = await joinSessions(await yard.pair());
  for (const session of [guest, host]) {
    const stream = session.open({ kind: 'exec' });
    stream.end('hello');
    expect(await stream.peerHead).toEqual({ echo: { kind: 'exec' } });
    expect(await text(stream)).toBe('hello');
  }
  expect(await guest.ping()).toBeGreaterThanOrEqual(0);
  await host.close();
  expect(await guest.closed).toMatchObject({ code: 'peer_closed', peerCode: 'closed' });
  expect(await host.closed).toMatchObject({ code: 'closed' });
});

import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { Cut } from '../src/cut.ts';
import { type CheckedAddress, DialFault, type DialTarget } from '../src/dial.ts';
import { type DialResult, dialChecked } from '../src/dial-checked.ts';
import { interleaveFamilies } from '../src/interleave-families.ts';
import { connectHead, type Harness, openTunnel, startHarness, statusOf, until } from './harness.ts';

const six = (last: number): CheckedAddress => ({ address: `2606:4700::${last}`, family: 6 });
const four = (last: number): CheckedAddress => ({ address: `93.184.216.${last}`, family: 4 });
const TOTAL_MS = 10_000;
const STAGGER_MS = 250;

/** A race whose clock is turned and whose dials are settled by the test. */
function startRace(addresses: readonly CheckedAddress[]) {
  let now = 0;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  const dials = new Map<string, { target: DialTarget; connect: () => PassThrough; fail: (error: Error) => void }>();
  const results: DialResult[] = [];
  const cut = new Cut();
  const plan = {
    dial: (target: DialTarget) =>
      new Promise<PassThrough>((resolve, reject) => {
        const stream = new PassThrough();
        dials.set(target.address, {
          target,
          connect: () => {
            resolve(stream);
            return stream;
          },
          fail: reject,
        });
      }),
    host: 'api.example.test',
    port: 443,
    addresses,
    totalMs: TOTAL_MS,
    staggerMs: STAGGER_MS,
    cut,
    after: (ms: number, run: () => void) => {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((one) => one !== timer);
      };
    },
  };
  void dialChecked(plan).then((result) => results.push(result));
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return {
    cut,
    results,
    dialled: () => [...dials.keys()],
    timersLeft: () => timers.length,
    dialOf: (address: string) => {
      const found = dials.get(address);
      if (found === undefined) throw new Error(`${address} was not dialled`);
      return found;
    },
    settled,
    /** Turns the clock on, one timer after the other. */
    turn: async (ms: number) => {
      const end = now + ms;
      for (;;) {
        const [due] = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (due === undefined) break;
        now = due.at;
        timers = timers.filter((one) => one !== due);
        due.run();
        await settled();
      }
      now = end;
      await settled();
    },
  };
}

describe('the order of addresses', () => {
  it.each([
    ['one family', [four(1), four(2)], [four(1), four(2)]],
    ['the families in turns', [six(1), six(2), six(3), four(1)], [six(1), four(1), six(2), six(3)]],
    ['that of the first one first', [four(1), six(1), six(2)], [four(1), six(1), six(2)]],
    ['none', [], []],
  ])('is %s', (_what, given, order) => {
    expect(interleaveFamilies(given)).toEqual(order);
  });

  it('loses and adds none, and keeps the order of the resolver within a family', () => {
    const address = fc.oneof(fc.integer({ min: 1, max: 200 }).map(four), fc.integer({ min: 1, max: 200 }).map(six));
    fc.assert(
      fc.property(fc.array(address, { maxLength: 20 }), (given) => {
        const order = interleaveFamilies(given);
        for (const family of [4, 6]) {
          const of = (list: readonly CheckedAddress[]) => list.filter((one) => one.family === family);
          expect(of(order)).toEqual(of(given));
        }
      }),
    );
  });
});

describe('attempts at several addresses', () => {
  it('begin one after the other, each a stagger after the one before, and the first that connects is kept', async () => {
    const race = startRace([six(1), six(2), four(1)]);
    expect(race.dialled()).toEqual(['2606:4700::1']);
    await race.turn(STAGGER_MS - 1);
    expect(race.dialled()).toHaveLength(1);
    await race.turn(1);
    expect(race.dialled()).toEqual(['2606:4700::1', '93.184.216.1']);
    await race.turn(STAGGER_MS);
    expect(race.dialled()).toHaveLength(3);
    const stream = race.dialOf('93.184.216.1').connect();
    await race.settled();
    expect(race.results).toEqual([{ ok: true, stream, address: '93.184.216.1' }]);
    expect(race.timersLeft()).toBe(0);
    expect(race.dialOf('2606:4700::1').target.signal.aborted).toBe(true);
    expect(race.dialOf('2606:4700::2').target.signal.aborted).toBe(true);
    expect(race.dialOf('93.184.216.1').target.signal.aborted).toBe(false);
    const late = race.dialOf('2606:4700::1').connect();
    await race.settled();
    expect([late.destroyed, stream.destroyed]).toEqual([true, false]);
  });

  it('go on at once where one fails, and begin no more than there are', async () => {
    const race = startRace([six(1), four(1)]);
    race.dialOf('2606:4700::1').fail(new Error('ECONNREFUSED'));
    await race.settled();
    expect(race.dialled()).toEqual(['2606:4700::1', '93.184.216.1']);
    race.dialOf('93.184.216.1').fail(new Error('ECONNREFUSED'));
    await race.settled();
    expect(race.results).toEqual([{ ok: false, reason: 'dial_failed', address: '93.184.216.1' }]);
    expect(race.timersLeft()).toBe(0);
  });

  it('wait for those under way where the last one failed', async () => {
    const race = startRace([six(1), four(1)]);
    await race.turn(STAGGER_MS);
    race.dialOf('93.184.216.1').fail(new Error('ECONNREFUSED'));
    await race.settled();
    expect(race.results).toEqual([]);
    race.dialOf('2606:4700::1').connect();
    await race.settled();
    expect(race.results).toMatchObject([{ ok: true, address: '2606:4700::1' }]);
  });

  it('end all together at the bound of the dial', async () => {
    const race = startRace([six(1), four(1)]);
    await race.turn(TOTAL_MS - 1);
    expect(race.results).toEqual([]);
    await race.turn(1);
    expect(race.results).toEqual([{ ok: false, reason: 'dial_timeout', address: '93.184.216.1' }]);
    expect(race.dialOf('93.184.216.1').target.signal.aborted).toBe(true);
  });

  it('end with the connection that wanted them', async () => {
    const race = startRace([six(1), four(1)]);
    race.cut.make();
    await race.turn(STAGGER_MS);
    expect(race.results).toMatchObject([{ ok: false, reason: 'cancelled' }]);
    expect(race.dialled()).toHaveLength(1);
    expect(race.dialOf('2606:4700::1').target.signal.aborted).toBe(true);
  });

  it('end at a fault that is one of every address', async () => {
    const race = startRace([six(1), four(1)]);
    race.dialOf('2606:4700::1').fail(new DialFault('dial_failed', true));
    await race.settled();
    expect(race.dialled()).toHaveLength(1);
    expect(race.results).toMatchObject([{ ok: false, reason: 'dial_failed' }]);
  });
});

describe('a host with several addresses', () => {
  let harness: Harness;
  afterEach(() => harness?.stop());

  it('has the address that was used in its audit, where the first ones are dead', async () => {
    harness = await startHarness({
      resolve: () => ['2606:4700::1', '2606:4700::2', '93.184.216.1'],
      beforeDial: ({ family }) => {
        if (family === 6) throw new Error('ENETUNREACH');
      },
    });
    const client = await openTunnel(harness);
    client.socket.end();
    await until(() => harness.lines.length === 2, 'the end');
    expect(harness.dialled).toEqual(['2606:4700::1', '93.184.216.1']);
    expect(harness.lines.at(-1)).toMatchObject({ event: 'end', address: '93.184.216.1' });
  });

  it('is looked up for each tunnel: what was answered and judged for this one is dialled, and nothing of an earlier answer', async () => {
    const answers = [['93.184.216.1'], ['93.184.216.2', '2606:4700::2'], ['10.0.0.1'], ['93.184.216.4']];
    harness = await startHarness({ resolve: (_host, call) => answers[call] ?? [] });
    const statuses: (number | undefined)[] = [];
    for (const _answer of answers) {
      const client = harness.connect();
      client.socket.write(connectHead('api.example.test:443'));
      await until(() => statusOf(client) !== undefined, 'an answer');
      statuses.push(statusOf(client));
    }
    expect(statuses).toEqual([200, 200, 403, 200]);
    expect(harness.dialled).toEqual(['93.184.216.1', '93.184.216.2', '93.184.216.4']);
    expect(harness.lines.filter(({ event }) => event === 'open').map(({ addresses }) => addresses)).toEqual([
      answers[0],
      answers[1],
      answers[3],
    ]);
  });
});

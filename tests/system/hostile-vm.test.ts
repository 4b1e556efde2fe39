import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MAX_STREAMS, STREAM_WINDOW_BYTES } from '@firecrew/link';
import { ANSWER_BREACHES, breaches } from '@firecrew/link/testing';
import { guestHealth, waitExec } from '@firecrew/vmm';
import { LYING_RECORDS, shell } from '@firecrew/vmm/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hostileVmStore } from './support/guest-programs.ts';
import { bootHostilePair, type HostilePair } from './support/hostile-pair.ts';
import { until } from './support/until.ts';
import { testVmStore } from './support/vm-store.ts';

/** Time for two boots, and for one attack, in `ms`: emulation on a busy machine takes ten times as long as on an idle one. */
const BOOT_MS = 170_000;
const ATTACK_MS = 120_000;
/** Streams of floods: more of them than a session may have open, and so many windows that a host without bounds would show it. */
const FLOOD = 5000;
const STALLED = 64;
const CONSOLE_BYTES = 524_288;

const honestStore = await testVmStore();
const hostileStore = await hostileVmStore();
const lacking = [honestStore, hostileStore].flatMap((store) => ('missing' in store ? [store.missing] : []))[0];
const missing = lacking === undefined ? '' : ` (not run: ${lacking})`;

describe.skipIf(missing !== '')(`a hostile guest in a VM${missing}`, { timeout: ATTACK_MS }, () => {
  let folder = '';
  let pair: HostilePair;
  let honestSession: unknown;
  let answered = 0;

  beforeAll(async () => {
    if ('missing' in honestStore || 'missing' in hostileStore) throw new Error(lacking);
    folder = await mkdtemp(join(tmpdir(), 'fch-'));
    await chmod(folder, 0o711);
    const owner = process.getuid?.() === 0 ? { uid: 65_532, gid: 65_532 } : undefined;
    pair = await bootHostilePair(folder, { hostile: hostileStore.root, honest: honestStore.root }, owner);
    honestSession = await pair.honest.session();
  }, BOOT_MS);
  afterAll(async () => {
    if (folder === '') return;
    await pair?.close();
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  }, ATTACK_MS);

  /** The other VM answers a command that was sent before the attack, and one that is sent after it, over the session it had. */
  const ask = async (): Promise<string> => {
    answered += 1;
    return (await shell(pair.honest, `echo ${answered}`, { cwd: '/', timeoutMs: ATTACK_MS })).output.trim();
  };
  let during: Promise<string>;
  let expected = '';
  let mayDialAgain = true;
  beforeEach(() => {
    expected = String(answered + 1);
    during = ask();
  });
  afterEach(async () => {
    expect(await during).toBe(expected);
    const after = String(answered + 1);
    expect(await ask()).toBe(after);
    expect(await pair.honest.session()).toBe(honestSession);
    if (!mayDialAgain) return;
    // Who attacked has a session again, and what the attack held on to is gone with the old one.
    const session = await pair.hostile.session(ATTACK_MS);
    await guestHealth(session);
    await until('nothing of the attack is held', () => pair.held.length === 0 && session.openStreams === 0, ATTACK_MS);
  });

  /** What ended the session that was attacked. */
  const endOf = async (...words: string[]): Promise<unknown> => {
    const { session } = await pair.order(...words);
    return (await session.closed).code;
  };

  it.each(breaches({ head: null, foreign: 2 }).map(([name, , code], index) => [name, index, code] as const))(
    'that sends %s loses its session',
    async (_name, index, code) => {
      expect(await endOf('breach', String(index))).toBe(code);
    },
  );

  it.each(ANSWER_BREACHES.map(([name, , code], index) => [name, index, code] as const))(
    'that answers with %s loses its session, and its host gets an error',
    async (_name, index, code) => {
      const session = await pair.hostile.session();
      const exec = { t: 'exec', id: randomUUID(), argv: ['answer', String(index)], cwd: '/', env: null, timeoutMs: 1, outputLimitBytes: 1 };
      const stream = session.open(exec);
      const failed = new Promise((resolve) => stream.once('error', resolve));
      expect((await session.closed).code).toBe(code);
      expect(await failed).toMatchObject({ code: 'link_lost' });
    },
  );

  it('that sends bytes without any order loses its session', async () => {
    expect(await endOf('garbage')).toBe('unknown_frame_type');
  });

  it('that sends a head which never becomes whole loses its session', async () => {
    expect(await endOf('drip')).toBe('peer_silent');
  });

  it('that dials without end and without a preamble is refused', async () => {
    const before = pair.refusals.length;
    // A serial port does not show that the guest dials anew: what it says ends the session that there was.
    expect(await endOf('babble')).toBe('unknown_frame_type');
    await until('the dial is refused', () => pair.refusals.length > before, ATTACK_MS);
    // Under emulation the bytes may take longer than a preamble has.
    expect(pair.refusals.at(before)?.reason).toMatch(/^preamble_not_found$|^preamble_timeout$/);
  });

  it('that dials with another secret is refused', async () => {
    const before = pair.refusals.length;
    expect(await endOf('impostor')).toBe('peer_restarted');
    await until('the dial is refused', () => pair.refusals.length > before, ATTACK_MS);
    expect(pair.refusals.at(before)?.reason).toBe('wrong_secret');
  });

  it('that opens and resets stream after stream leaves none behind, and is answered afterwards', async () => {
    const before = pair.opened();
    const { session } = await pair.order('flood', String(FLOOD));
    await until('all have come', () => pair.opened() - before === FLOOD, ATTACK_MS);
    await until('all are gone', () => session.openStreams === 0, ATTACK_MS);
    await guestHealth(session);
    expect(await pair.hostile.session()).toBe(session);
  });

  it('that opens more streams than it may has the bound, and no more', async () => {
    const before = pair.opened();
    const { session, answer } = await pair.order('hoard', String(MAX_STREAMS + 100));
    await answer;
    await until('the bound is reached', () => session.openStreams >= MAX_STREAMS, ATTACK_MS);
    // Its own streams come before this answer.
    await guestHealth(session);
    expect([session.openStreams, pair.held.length, pair.opened() - before]).toEqual([MAX_STREAMS, MAX_STREAMS, MAX_STREAMS]);
    await pair.order('leave');
    await session.closed;
  });

  it('that sends the largest heads without end has each refused, and holds no stream', async () => {
    const before = pair.opened();
    const { session, answer } = await pair.order('heads', '500');
    await answer;
    await guestHealth(session);
    await until('all are refused', () => session.openStreams === 0, ATTACK_MS);
    expect([pair.opened() - before, pair.held.length]).toEqual([0, 0]);
  });

  it('whose streams nobody reads fills their windows, and has no more than those', async () => {
    const { session, answer } = await pair.order('stall', String(STALLED));
    expect(await answer).toBeUndefined();
    expect(pair.held.length).toBe(STALLED);
    // What a stream holds comes in one turn, before the guest can have sent more.
    const bytes = pair.held.map(() => 0);
    pair.held.forEach((stream, index) => {
      stream.consume((piece) => (bytes[index] = (bytes[index] ?? 0) + piece.length)).catch(() => undefined);
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(bytes).toEqual(bytes.map(() => STREAM_WINDOW_BYTES));
    await pair.order('leave');
    await session.closed;
  });

  it.each(LYING_RECORDS.map(({ what }, index) => [what, index] as const))(
    'that ends an exec with %s never makes it a success',
    async (_what, index) => {
      const { session, answer } = await pair.order('lie', String(index));
      expect(await answer).toBeUndefined();
      await expect(waitExec(session, randomUUID(), ATTACK_MS)).rejects.toMatchObject({ code: 'guest_reply_invalid' });
    },
  );

  it('that writes to its console without end makes no file of its host larger', async () => {
    const sizes = async (): Promise<unknown> => {
      const names = await readdir(pair.folders.hostile, { recursive: true });
      return Promise.all(names.sort().map(async (name) => [name, (await stat(join(pair.folders.hostile, name))).size]));
    };
    const before = await sizes();
    const { answer } = await pair.order('console', String(CONSOLE_BYTES));
    expect(await answer).toBeUndefined();
    expect(await sizes()).toEqual(before);
  });

  // The last: a guest that lets its serial port fill up may not get it back, which is its own loss.
  it('that asks and never reads the answers loses its session', async () => {
    expect(await endOf('deaf')).toBe('peer_stalled');
    mayDialAgain = false;
  });
});

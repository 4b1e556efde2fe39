import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { identifyProcess } from '@firecrew/base';
import { afterEach, describe, expect, it } from 'vitest';
import { LayerStore, type LayerStoreBounds } from '../../src/index.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
const [A, B, C] = ['a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64)] as const;
const NOW = Date.now();
const DAY_MS = 24 * 60 * 60 * 1000;
const MIB = 1024 * 1024;
const BOUNDS: LayerStoreBounds = { maxBytes: 100 * MIB, unusedMs: 7 * DAY_MS, reserveBytes: 0 };

async function newStore(bounds: Partial<LayerStoreBounds> = {}): Promise<LayerStore> {
  const store = new LayerStore(at('layers'), { ...BOUNDS, ...bounds });
  await store.prepare();
  return store;
}

/** A file that begins as a clean ext4 does, of some bytes that are on the disk. */
function newDisk(name: string, { bytes = MIB, state = 1 } = {}): string {
  const content = Buffer.alloc(bytes, 1);
  content.fill(0, 1024, 2048);
  content.writeUInt16LE(0xef53, 1024 + 0x38);
  content.writeUInt16LE(state, 1024 + 0x3a);
  writeFileSync(at(name), content);
  return at(name);
}

/** A process that uses a layer. */
let user: ChildProcess | undefined;
afterEach(() => {
  user?.kill('SIGKILL');
  user = undefined;
});

describe('the store of layers', () => {
  it('takes a disk by moving it, gives it read-only, and has nothing else afterwards', async () => {
    const store = await newStore();
    expect(await store.open(A)).toBeUndefined();
    const disk = newDisk('disk');
    const { ino } = statSync(disk);
    await store.publish(A, disk, NOW);
    expect(existsSync(disk)).toBe(false);
    const layer = await store.open(A);
    expect([(await layer?.handle.stat())?.ino, statSync(layer?.path ?? '').mode & 0o777]).toEqual([ino, 0o444]);
    expect([statSync(store.root).mode & 0o777, readdirSync(store.root)]).toEqual([0o700, [A]]);
    await layer?.close();
    expect(await store.open(B)).toBeUndefined();
  });

  it('keeps the first of two disks for one key', async () => {
    const store = await newStore();
    const first = newDisk('first');
    const { ino } = statSync(first);
    await store.publish(A, first, NOW);
    await store.publish(A, newDisk('second'), NOW);
    const layer = await store.open(A);
    expect((await layer?.handle.stat())?.ino).toBe(ino);
    expect(readdirSync(store.root)).toEqual([A]);
    await layer?.close();
  });

  it.each([
    ['is not clean', { state: 3 }, {}, /its disk is unclean/],
    ['is more than all layers may be', {}, { maxBytes: MIB / 2 }, /all layers together may take 524288/],
    ['would take the reserve of the disk', {}, { reserveBytes: Number.MAX_SAFE_INTEGER }, /are to stay so/],
  ])('refuses a disk that %s, and leaves it where it is', async (_what, disk, bounds, message) => {
    const store = await newStore(bounds);
    const path = newDisk('disk', disk);
    await expect(store.publish(A, path, NOW)).rejects.toMatchObject({
      code: 'layer_refused',
      id: A,
      message: expect.stringMatching(message),
    });
    expect([existsSync(path), readdirSync(store.root)]).toEqual([true, []]);
  });

  it('says before a build that there is no room', async () => {
    await (await newStore()).demandRoom(A, NOW);
    const full = await newStore({ reserveBytes: Number.MAX_SAFE_INTEGER });
    await expect(full.demandRoom(A, NOW)).rejects.toMatchObject({ code: 'layer_refused' });
  });

  it('makes room by what was not used for longest, and spares what is in use', async () => {
    const store = await newStore({ maxBytes: 2.5 * MIB });
    for (const [key, age] of [
      [A, 3],
      [B, 2],
    ] as const) {
      await store.publish(key, newDisk(key), NOW);
      utimesSync(at('layers', key), NOW / 1000 - age, NOW / 1000 - age);
    }
    const used = await store.open(A);
    await store.publish(C, newDisk('third'), NOW);
    expect(readdirSync(store.root).sort()).toEqual([A, C]);
    await used?.close();
  });

  it('collects what was not used for long; a use makes it young again, and who died uses nothing', async () => {
    const store = await newStore();
    const old = NOW / 1000 - 30 * 24 * 3600;
    for (const key of [A, B, C]) await store.publish(key, newDisk(key), NOW);
    for (const key of [A, B, C]) utimesSync(at('layers', key), old, old);
    await (await store.open(A))?.close();
    user = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore' });
    const identity = identifyProcess(user.pid ?? 0);
    mkdirSync(at('layers', B, 'users'));
    writeFileSync(at('layers', B, 'users', `${identity?.pid}.${identity?.startTicks}.${identity?.bootId}.00000000`), '');
    utimesSync(at('layers', B), old, old);
    expect(await store.collect(NOW)).toEqual([C]);
    user.kill('SIGKILL');
    await once(user, 'exit');
    expect(await store.collect(NOW)).toEqual([B]);
    expect(readdirSync(store.root)).toEqual([A]);
  });

  it('keeps what a mark uses that it does not understand', async () => {
    const store = await newStore({ maxBytes: 0 });
    mkdirSync(at('layers', A, 'users'), { recursive: true });
    newDisk(`layers/${A}/disk`);
    writeFileSync(at('layers', A, 'users', 'of-a-later-version'), '');
    expect([await store.collect(NOW), (await store.list())[0]?.inUse]).toEqual([[], true]);
  });

  it('takes away what makers that died have left, once that is old', async () => {
    const store = await newStore();
    for (const [name, days] of [
      ['making-old', 2],
      ['making-new', 0.5],
    ] as const) {
      mkdirSync(at('layers', name));
      utimesSync(at('layers', name), NOW / 1000 - days * 24 * 3600, NOW / 1000 - days * 24 * 3600);
    }
    await store.collect(NOW);
    expect(readdirSync(store.root)).toEqual(['making-new']);
  });

  it('leaves no mark for a layer that is not there, opens no link, and loses no layer that is removed while it is open', async () => {
    const store = await newStore();
    mkdirSync(at('layers', B));
    expect(await store.open(B)).toBeUndefined();
    expect(readdirSync(at('layers', B, 'users'))).toEqual([]);
    symlinkSync(newDisk('elsewhere'), at('layers', B, 'disk'));
    await expect(store.open(B)).rejects.toMatchObject({ code: 'layer_store_failed' });
    await store.publish(A, newDisk('disk'), NOW);
    const layer = await store.open(A);
    await store.remove(A);
    expect([existsSync(at('layers', A)), (await layer?.handle.stat())?.size]).toEqual([false, MIB]);
    await layer?.close();
    await store.remove(A);
  });

  it.skipIf(process.getuid?.() === 0)('never takes a store that cannot be read for an empty one', async () => {
    const store = await newStore();
    chmodSync(store.root, 0o000);
    await expect(store.list()).rejects.toMatchObject({ code: 'layer_store_failed' });
    chmodSync(store.root, 0o700);
  });

  it('is empty where it was never made, and says so of a file in its place', async () => {
    const store = new LayerStore(at('layers'), BOUNDS);
    expect([await store.list(), await store.collect(NOW)]).toEqual([[], []]);
    rmSync(at('layers'), { force: true });
    writeFileSync(at('layers'), '');
    await expect(store.list()).rejects.toMatchObject({ code: 'layer_store_failed' });
    await expect(store.prepare()).rejects.toMatchObject({ code: 'layer_store_failed' });
  });
});

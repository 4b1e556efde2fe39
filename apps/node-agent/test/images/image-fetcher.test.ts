import { mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import {
  type ArtifactDigest,
  type ArtifactFacts,
  ArtifactNames,
  type ArtifactOrigin,
  DEFAULT_REFERENCES,
  ImageStore,
  lookUpBootArtifacts,
  piecesFolder,
  type StoredArtifact,
} from '@firecrew/rootfs';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ImageFetcher } from '../../src/images/image-fetcher.ts';

let folder: string;
let offered: ImageStore;
let artifacts: ReadonlyMap<string, StoredArtifact>;
let fetcher: ImageFetcher | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-fetcher-'));
  offered = new ImageStore(join(folder, 'offered'));
  const architecture = 'amd64';
  const made = new Map<string, StoredArtifact>();
  const add = async (name: string, facts: ArtifactFacts): Promise<void> => {
    const stored = await offered.add(async ({ target }) => {
      await writeFile(join(target, 'file'), name);
      return facts;
    });
    made.set(name, stored);
  };
  await add('kernel', { architecture, kind: 'kernel', version: '1', modules: [], builtIn: [], missing: [] });
  await add('payload', { architecture, kind: 'payload', format: 'squashfs', mountPoint: '/opt', nodeVersion: '24.0.0', unpackedBytes: 1 });
  await add('default', {
    ...{ architecture, kind: 'image', format: 'squashfs', source: { kind: 'directory' }, npm: [], environment: {} },
    ...{ user: '', workingDirectory: '/', entryCount: 1, times: { kind: 'kept' } },
  });
  artifacts = made;
});
afterEach(async () => {
  await fetcher?.stop();
  fetcher = undefined;
  await rm(folder, { recursive: true, force: true });
});

/** The other store as an origin; `fail` may throw in place of a file. */
function originOf(fail: (name: string) => void = () => undefined): ArtifactOrigin {
  return {
    names: async () => new Map([...artifacts].map(([name, { id }]) => [name, id])),
    manifest: async (id: ArtifactDigest) => (await offered.find(id)).manifestBytes,
    file: async (id, { file, from }) => {
      const bytes = await readFile(join((await offered.find(id)).folder, file.name));
      fail(bytes.toString());
      return {
        from,
        body: (async function* () {
          yield bytes.subarray(from);
        })(),
      };
    },
  };
}

/** A fetcher with a clock that the test sets, and what it told. */
function start(origin: ArtifactOrigin, wanted = [DEFAULT_REFERENCES]) {
  const clock = { ms: 0 };
  const changes: (string | undefined)[][] = [];
  const tokens: string[] = [];
  const made: ImageFetcher = new ImageFetcher({
    store: join(folder, 'own'),
    wanted: () => wanted,
    originOf: (token) => {
      tokens.push(token);
      return origin;
    },
    architecture: 'amd64',
    reserveBytes: 0,
    log: pino({ level: 'silent' }),
    clock: () => clock.ms,
    random: () => 0,
    onChange: () => changes.push(['kernel', 'payload', 'default'].map((name) => made.statusOf(name))),
  });
  fetcher = made;
  return { fetcher: made, clock, changes, tokens };
}

const lacked = async (): Promise<string[]> =>
  (await lookUpBootArtifacts(join(folder, 'own'), DEFAULT_REFERENCES)).missing.map(({ reference }) => reference);

describe('the fetcher of an image store', () => {
  it('gets what is lacking, one after another, and tells that something came', async () => {
    const { fetcher: made, changes, tokens } = start(originOf());
    made.linked('a-token');
    await expect.poll(lacked).toEqual([]);
    await expect.poll(() => changes.at(-1)).toEqual([undefined, undefined, undefined]);
    expect(tokens).toEqual(['a-token', 'a-token', 'a-token']);
    expect(changes[0]?.[0]).toBe('it is being fetched from the server');
    expect(await new ArtifactNames(join(folder, 'own')).get('default')).toBe(artifacts.get('default')?.id);
  });

  it('does nothing before there is a link, and says so where the server offers nothing', async () => {
    const { fetcher: made, changes, tokens } = start(originOf());
    expect(made.statusOf('kernel')).toBe(undefined);
    expect(made.isComing('kernel')).toBe(false);
    made.linked(undefined);
    await expect.poll(() => made.statusOf('default')).toBe('its server offers no images');
    expect([tokens, changes.length, made.isComing('kernel')]).toEqual([[], 3, false]);
    made.linked('a-token');
    expect(made.isComing('kernel')).toBe(true);
    await expect.poll(lacked).toEqual([]);
  });

  it('gets the others where one fails, says why, and is tried again with the next link', async () => {
    let isBroken = true;
    const { fetcher: made } = start(
      originOf((name) => {
        if (isBroken && name === 'payload') throw new CodedError('image_transfer_broken', 'the line is dead');
      }),
    );
    made.linked('a-token');
    await expect.poll(lacked).toEqual(['payload']);
    await expect.poll(() => made.statusOf('payload')).toBe('it was not fetched from the server: the line is dead (image_transfer_broken)');
    expect(made.isComing('payload')).toBe(true);
    isBroken = false;
    made.linked('another-token');
    await expect.poll(lacked).toEqual([]);
    expect(made.statusOf('payload')).toBe(undefined);
  });

  it('ends after eight tries of what the server must not send, says so, and begins anew with the next link', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    let tries = 0;
    const refuse = (name: string): void => {
      if (name !== 'payload') return;
      tries += 1;
      throw new CodedError('image_length_wrong', 'a lie');
    };
    const { fetcher: made, clock } = start(originOf(refuse));
    made.linked('a-token');
    const later = async (): Promise<string | undefined> => {
      clock.ms += 70_000;
      await vi.advanceTimersByTimeAsync(70_000);
      return made.statusOf('payload');
    };
    await expect.poll(later).toContain('is not tried again before the link to the server is made anew');
    for (let times = 0; times < 20; times += 1) await later();
    expect([tries, await lacked(), made.isComing('payload')]).toEqual([8, ['payload'], false]);
    made.linked('another-token');
    await expect.poll(() => tries).toBe(9);
  });

  it('is stopped in the middle of a transfer, and keeps what came', async () => {
    const origin = originOf();
    const hangs: ArtifactOrigin = {
      ...origin,
      file: async (_id, { from }, signal) => ({
        from,
        body: (async function* () {
          yield Buffer.from('k');
          await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        })(),
      }),
    };
    const { fetcher: made } = start(hangs);
    made.linked('a-token');
    const piece = join(folder, 'own', `making-fetched-${artifacts.get('kernel')?.id.slice(7)}`, 'target', 'file');
    await expect.poll(async () => await readFile(piece, 'utf8').catch(() => '')).toBe('k');
    await made.stop();
    expect(await readFile(piece, 'utf8')).toBe('k');
    expect(await lacked()).toEqual(['kernel', 'payload', 'default']);
  });

  it('removes pieces of what nobody wants any more, and goes on from those of what is wanted, however old', async () => {
    const ids = Object.fromEntries([...artifacts].map(([name, { id }]) => [name, id]));
    const { kernel = '', payload = '', default: image = '' } = ids;
    const old = async (id: string, bytes: string): Promise<string> => {
      const root = join(folder, 'own', piecesFolder(id));
      await mkdir(join(root, 'target'), { recursive: true });
      await writeFile(join(root, 'target', 'file'), bytes);
      for (const path of [join(root, 'target', 'file'), join(root, 'target'), root]) await utimes(path, 1, 1);
      return root;
    };
    const unwanted = await old(`sha256:${'0'.repeat(64)}`, 'x');
    await old(kernel, 'ker');
    const asked: number[] = [];
    const origin = originOf();
    const watched: ArtifactOrigin = {
      ...origin,
      file: async (id, step, signal) => {
        if (id === kernel) asked.push(step.from);
        return await origin.file(id, step, signal);
      },
    };
    const wanted = { kernel, payload, image };
    start(watched, [wanted]).fetcher.linked('a-token');
    await expect.poll(async () => (await lookUpBootArtifacts(join(folder, 'own'), wanted)).missing).toEqual([]);
    expect([asked, await stat(unwanted).catch(codeOf)]).toEqual([[3], 'ENOENT']);
  });

  it('asks once for what two drivers lack', async () => {
    const { fetcher: made, tokens } = start(originOf(), [DEFAULT_REFERENCES, DEFAULT_REFERENCES]);
    made.linked('a-token');
    await expect.poll(lacked).toEqual([]);
    expect(tokens).toHaveLength(3);
  });
});

import { access, chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type ArtifactDigest,
  ArtifactNames,
  type ArtifactOrigin,
  fetchArtifact,
  ImageStore,
  lookUpBootArtifacts,
  type MissingArtifact,
  piecesFolder,
  type StoredArtifact,
  type TransferStep,
} from '../../src/index.ts';
import { encodeManifest, manifestId } from '../../src/store/artifact-manifest.ts';
import { addFiles, IMAGE_FACTS, KERNEL_FACTS } from '../support/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
const BIG = 'abcdefghij'.repeat(1_000);
const FILES = { 'modules/x.ko': 'module', big: BIG, empty: '' };
const signal = new AbortController().signal;

let own: ImageStore;
let offered: ImageStore;
let kernel: StoredArtifact;
beforeEach(async () => {
  [own, offered] = [new ImageStore(at('own')), new ImageStore(at('offered'))];
  kernel = await addFiles(offered, FILES, KERNEL_FACTS);
});

/** Another store as an origin; `asked` has every request for a file, and `change` what is sent in place of its bytes. */
class StoreOrigin implements ArtifactOrigin {
  readonly asked: string[] = [];
  change: (step: TransferStep, bytes: Buffer) => AsyncIterable<Uint8Array> = (_step, bytes) => inParts(bytes);
  knowsParts = true;
  /** Sent in place of every manifest. */
  otherManifest: Buffer | undefined;

  async names(): Promise<ReadonlyMap<string, ArtifactDigest>> {
    return new Map([['kernel', kernel.id]]);
  }

  async manifest(id: ArtifactDigest): Promise<Buffer> {
    return this.otherManifest ?? (await offered.find(id)).manifestBytes;
  }

  async file(id: ArtifactDigest, step: TransferStep) {
    this.asked.push(`${step.file.name} ${step.from}`);
    const bytes = await readFile(join((await offered.find(id)).folder, step.file.name));
    const from = this.knowsParts ? step.from : 0;
    return { from, body: this.change(step, bytes.subarray(from)) };
  }
}

async function* inParts(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += 1_000) yield bytes.subarray(from, from + 1_000);
}

/** The first bytes, and then the end of the connection. */
async function* cutAfter(bytes: Buffer, count: number): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, count);
  throw new Error('other side closed');
}

const byName: MissingArtifact = { kind: 'kernel', reference: 'kernel', id: null };

/** Fetches; gives the code of the error, or undefined. */
async function fetchWith(origin: ArtifactOrigin, missing = byName, over: Partial<Parameters<typeof fetchArtifact>[3]> = {}) {
  const options = { architecture: 'amd64' as const, reserveBytes: 0, signal, onBytes: () => undefined, ...over };
  return await fetchArtifact(own, origin, missing, options).then(
    () => undefined,
    (error: unknown) => codeOf(error) ?? String(error),
  );
}

const piece = (name: string): string => join(at('own'), piecesFolder(kernel.id), 'target', name);
const isPublished = async (): Promise<boolean> =>
  (await own.list()).artifacts.length > 0 || (await new ArtifactNames(at('own')).list()).size > 0;

describe('an artifact that is fetched', () => {
  it('is published under its id and named, and leaves nothing beside it', async () => {
    const origin = new StoreOrigin();
    expect(await fetchWith(origin)).toBe(undefined);
    const open = await own.openVerified(kernel.id, 'kernel');
    expect(await readFile(open.files.get('big')?.path ?? '', 'utf8')).toBe(BIG);
    await open.close();
    expect(await new ArtifactNames(at('own')).get('kernel')).toBe(kernel.id);
    expect(origin.asked).toEqual(['big 0', 'modules/x.ko 0']);
    expect(await readdir(at('own'))).toEqual(['images', 'names']);
    expect((await stat(join(at('own'), 'images', kernel.id.slice(7), 'big'))).mode & 0o777).toBe(0o444);
  });

  it('by its id gets no name', async () => {
    expect(await fetchWith(new StoreOrigin(), { ...byName, reference: kernel.id, id: kernel.id })).toBe(undefined);
    expect((await new ArtifactNames(at('own')).list()).size).toBe(0);
  });

  it.each([1, 999, 5_000, 9_999])('goes on where it was cut after %i bytes, also in another process', async (count) => {
    const origin = new StoreOrigin();
    origin.change = (step, bytes) => (step.file.name === 'big' ? cutAfter(bytes, count) : inParts(bytes));
    expect(await fetchWith(origin)).toBe('image_cut');
    expect((await stat(piece('big'))).size).toBe(count);
    expect(await isPublished()).toBe(false);

    own = new ImageStore(at('own'));
    const again = new StoreOrigin();
    const seen: number[] = [];
    expect(await fetchWith(again, byName, { onBytes: (bytes) => seen.push(bytes) })).toBe(undefined);
    expect(again.asked).toEqual([`big ${count}`, 'modules/x.ko 0']);
    expect([seen[0], seen.at(-1)]).toEqual([count, BIG.length + 6]);
    await (await own.openVerified(kernel.id)).close();
  });

  it('goes on from each cut of many', async () => {
    const origin = new StoreOrigin();
    origin.change = (_step, bytes) => cutAfter(bytes, 3_000);
    const codes: (string | undefined)[] = [];
    for (let tries = 0; tries < 4; tries += 1) codes.push(await fetchWith(origin));
    expect(origin.asked).toEqual(['big 0', 'big 3000', 'big 6000', 'big 9000']);
    origin.change = (_step, bytes) => inParts(bytes);
    expect([...codes, await fetchWith(origin)]).toEqual(['image_cut', 'image_cut', 'image_cut', 'image_cut', undefined]);
  });

  it('does not ask for what is here whole', async () => {
    const origin = new StoreOrigin();
    origin.change = (step, bytes) => (step.file.name === 'big' ? inParts(bytes) : cutAfter(bytes, 2));
    expect(await fetchWith(origin)).toBe('image_cut');
    origin.change = (_step, bytes) => inParts(bytes);
    expect(await fetchWith(origin)).toBe(undefined);
    expect(origin.asked).toEqual(['big 0', 'modules/x.ko 0', 'modules/x.ko 2']);
  });

  it('begins anew where the origin knows no parts', async () => {
    const origin = new StoreOrigin();
    origin.change = (_step, bytes) => cutAfter(bytes, 4_000);
    expect(await fetchWith(origin)).toBe('image_cut');
    origin.change = (_step, bytes) => inParts(bytes);
    origin.knowsParts = false;
    expect(await fetchWith(origin)).toBe(undefined);
    await (await own.openVerified(kernel.id)).close();
  });

  it('goes on where everything but its publication was done', async () => {
    const origin = new StoreOrigin();
    origin.change = (_step, bytes) => cutAfter(bytes, 1);
    await fetchWith(origin);
    await writeFile(piece('manifest.json'), kernel.manifestBytes);
    origin.change = (_step, bytes) => inParts(bytes);
    expect(await fetchWith(origin)).toBe(undefined);
  });

  it('is not believed with another content, and the next try begins that file anew', async () => {
    const origin = new StoreOrigin();
    origin.change = (step, bytes) => inParts(step.file.name === 'big' ? Buffer.alloc(bytes.length, 'z') : bytes);
    expect(await fetchWith(origin)).toBe('image_digest_wrong');
    expect(await isPublished()).toBe(false);
    expect(await stat(piece('big')).catch(codeOf)).toBe('ENOENT');
    origin.change = (_step, bytes) => inParts(bytes);
    expect(await fetchWith(origin)).toBe(undefined);
    expect(origin.asked.slice(2)).toEqual(['big 0']);
  });

  it('is not believed where what was kept has changed', async () => {
    const origin = new StoreOrigin();
    origin.change = (_step, bytes) => cutAfter(bytes, 4_000);
    await fetchWith(origin);
    await writeFile(piece('big'), Buffer.alloc(4_000));
    origin.change = (_step, bytes) => inParts(bytes);
    expect(await fetchWith(origin)).toBe('image_digest_wrong');
    expect(await isPublished()).toBe(false);
  });

  it.each([
    ['longer than it says', (bytes: Buffer) => inParts(Buffer.concat([bytes, Buffer.from('x')])), 'image_length_wrong'],
    ['shorter than it says', (bytes: Buffer) => inParts(bytes.subarray(1)), 'image_cut'],
    ['nothing', () => inParts(Buffer.alloc(0)), 'image_cut'],
  ])('of which the origin sends %s is refused', async (_what, change, code) => {
    const origin = new StoreOrigin();
    origin.change = (_step, bytes) => change(bytes);
    expect(await fetchWith(origin)).toBe(code);
    expect(await isPublished()).toBe(false);
    if (code === 'image_length_wrong') expect((await stat(piece('big'))).size).toBe(0);
  });

  /** A manifest whose id is right and that says something else than it should. */
  const manifestWith = (change: (text: string) => string) => {
    const bytes = Buffer.from(change(kernel.manifestBytes.toString()));
    const origin = new StoreOrigin();
    origin.otherManifest = bytes;
    return { origin, missing: { ...byName, id: manifestId(bytes) } };
  };

  it.each([
    ['leads out', (text: string) => text.replace('"name":"big"', '"name":"../../big"')],
    ['is absolute', (text: string) => text.replace('"name":"big"', '"name":"/tmp/firecrew-big"')],
    ['leads down two folders', (text: string) => text.replace('"name":"big"', '"name":"a/b/big"')],
    ['is the manifest', (text: string) => text.replace('"name":"big"', '"name":"manifest.json"')],
    ['is there twice', (text: string) => text.replace('"name":"big"', '"name":"empty"')],
    ['holds a NUL', (text: string) => text.replace('"name":"big"', '"name":"b\\u0000g"')],
  ])('with a name that %s is refused before anything is written', async (_what, change) => {
    const { origin, missing } = manifestWith(change);
    expect(await fetchWith(origin, missing)).toBe('manifest_malformed');
    expect(origin.asked).toEqual([]);
    expect(await readdir(at('own')).catch(codeOf)).toBe('ENOENT');
    expect(await access('/tmp/firecrew-big').catch(codeOf)).toBe('ENOENT');
  });

  it('with a manifest of another digest is refused', async () => {
    const origin = new StoreOrigin();
    origin.otherManifest = Buffer.concat([kernel.manifestBytes, Buffer.from(' ')]);
    expect(await fetchWith(origin)).toBe('image_digest_wrong');
    expect(origin.asked).toEqual([]);
  });

  it('of another kind than is wanted is refused', async () => {
    expect(await fetchWith(new StoreOrigin(), { ...byName, kind: 'payload' })).toBe('image_kind_wrong');
  });

  it('for another processor is refused', async () => {
    expect(await fetchWith(new StoreOrigin(), byName, { architecture: 'arm64' })).toBe('image_architecture_wrong');
  });

  it('that the origin does not name is told so', async () => {
    expect(await fetchWith(new StoreOrigin(), { kind: 'image', reference: 'default', id: null })).toBe('image_not_offered');
  });

  it('does not come where it would eat into the reserve of the disk', async () => {
    const origin = new StoreOrigin();
    expect(await fetchWith(origin, byName, { reserveBytes: Number.MAX_SAFE_INTEGER })).toBe('image_no_room');
    expect(origin.asked).toEqual([]);
  });

  it('follows no link that lies where a file should', async () => {
    await mkdir(join(piece('big'), '..'), { recursive: true });
    await writeFile(at('elsewhere'), 'kept');
    await symlink(at('elsewhere'), piece('big'));
    expect(await fetchWith(new StoreOrigin())).toBe('image_store_failed');
    expect(await readFile(at('elsewhere'), 'utf8')).toBe('kept');
  });

  it('takes the place of a damaged copy', async () => {
    expect(await fetchWith(new StoreOrigin())).toBe(undefined);
    const path = join(at('own'), 'images', kernel.id.slice(7), 'big');
    await chmod(path, 0o644);
    await writeFile(path, 'damaged');
    expect(await fetchWith(new StoreOrigin())).toBe(undefined);
    await (await own.openVerified(kernel.id)).close();
  });
});

describe('what a store lacks', () => {
  const references = { kernel: 'kernel', payload: 'payload', image: `sha256:${'0'.repeat(64)}` };

  it('is what is not there by name, by id, or behind its name', async () => {
    expect(await lookUpBootArtifacts(at('own'), references)).toEqual({
      found: {},
      missing: [
        { kind: 'kernel', reference: 'kernel', id: null },
        { kind: 'payload', reference: 'payload', id: null },
        { kind: 'image', reference: references.image, id: references.image },
      ],
    });
    await new ArtifactNames(at('own')).set('kernel', kernel.id);
    expect((await lookUpBootArtifacts(at('own'), references)).missing[0]).toEqual({ kind: 'kernel', reference: 'kernel', id: kernel.id });
    await fetchWith(new StoreOrigin());
    const image = await addFiles(own, { 'root.squashfs': 'x' }, IMAGE_FACTS);
    const { found, missing } = await lookUpBootArtifacts(at('own'), { ...references, image: image.id });
    expect([found, missing.map(({ kind }) => kind)]).toEqual([{ kernel: kernel.id, image: image.id }, ['payload']]);
  });

  it('is not what cannot be read', async () => {
    const { bytes, id } = encodeManifest(kernel.manifest);
    expect(id).toBe(kernel.id);
    await fetchWith(new StoreOrigin());
    const path = join(at('own'), 'images', id.slice(7), 'manifest.json');
    await chmod(path, 0o644);
    await writeFile(path, `${bytes.toString()} `);
    expect(await lookUpBootArtifacts(at('own'), references).catch(codeOf)).toBe('image_digest_wrong');
  });
});

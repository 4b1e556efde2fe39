import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { newId } from '@firecrew/base';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INCOMING_GRACE_MS, openFileBlobStore } from '../../src/blobs/file-blob-store.ts';
import { initialiseBlobStore } from '../../src/blobs/store-marker.ts';
import { blobStoreCases } from '../../src/testing/blob-store-cases.ts';
import { memoryBlobStore } from '../../src/testing/memory-blob-store.ts';

let home: string;
let root: string;
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'fc-blobs-'));
  root = join(home, 'blobs');
  await initialiseBlobStore(root, 'test-store');
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function* bytes(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}
const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex');
const workspace = newId('workspace');
const pathOf = (digest: string): string => join(root, 'workspaces', workspace, digest.slice(0, 2), digest);

describe('the store in a folder', () => {
  it.each(blobStoreCases)('$name', async ({ run }) => run(await openFileBlobStore(root)));
});

describe('the store in memory', () => {
  it.each(blobStoreCases)('$name', ({ run }) => run(memoryBlobStore()));
});

describe('the marker', () => {
  it('is needed: an unmounted folder is not an empty store', async () => {
    mkdirSync(join(home, 'empty'));
    for (const path of ['empty', 'nowhere']) {
      await expect(openFileBlobStore(join(home, path))).rejects.toMatchObject({ code: 'blob_store_unavailable' });
    }
  });

  it('is made once, and only in an empty folder', async () => {
    await expect(initialiseBlobStore(root, 'other-store')).rejects.toMatchObject({ code: 'blob_store_exists' });
    writeFileSync(join(home, 'thesis.txt'), '');
    await expect(initialiseBlobStore(home, 'other-store')).rejects.toMatchObject({ code: 'blob_store_not_empty' });
    expect((await openFileBlobStore(root)).storeId).toBe('test-store');
  });

  it.each(['', 'short', 'has space in', '../../../etc', 'x'.repeat(65)])('does not take the id %j', async (id) => {
    await expect(initialiseBlobStore(join(home, 'new'), id)).rejects.toMatchObject({ code: 'blob_store_id_invalid' });
  });

  it.each(['', '{', '[]', '{"layout":2,"storeId":"test-store"}', '{"layout":1}', '{"layout":1,"storeId":"../x"}'])(
    'is not believed as %j',
    async (text) => {
      writeFileSync(join(root, 'firecrew-blob-store.json'), text);
      await expect(openFileBlobStore(root)).rejects.toMatchObject({ code: 'blob_store_unavailable' });
    },
  );

  it('tells the wrong store from the right one', async () => {
    await expect(openFileBlobStore(root, { expectStoreId: 'right-store' })).rejects.toMatchObject({ code: 'blob_store_other' });
    await openFileBlobStore(root, { expectStoreId: 'test-store' });
  });
});

describe('a store that goes away while it is open', () => {
  it('is never reported as missing blobs', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('x'), { maxBytes: 10 });
    renameSync(root, `${root}.gone`);
    mkdirSync(root);
    const attempts = [
      () => store.has(workspace, digest),
      () => store.open(workspace, digest),
      () => store.verify(workspace, digest),
      () => store.delete(workspace, digest),
      () => store.put(workspace, bytes('x'), { maxBytes: 10 }),
      () => store.list(workspace)[Symbol.asyncIterator]().next(),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 'blob_store_unavailable' });
    expect(readdirSync(root)).toEqual([]);
  });

  it('is told from another store mounted in its place', async () => {
    const store = await openFileBlobStore(root);
    rmSync(root, { recursive: true });
    await initialiseBlobStore(root, 'other-store');
    await expect(store.has(workspace, sha256('x'))).rejects.toMatchObject({ code: 'blob_store_unavailable' });
  });
});

describe('files', () => {
  it('are readable by their owner alone, and nothing unfinished stays', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('x'), { maxBytes: 10 });
    await expect(store.put(workspace, bytes('too much'), { maxBytes: 1 })).rejects.toMatchObject({ code: 'blob_too_large' });
    expect(statSync(pathOf(digest)).mode & 0o777).toBe(0o600);
    expect(statSync(root).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(root, 'incoming'))).toEqual([]);
  });

  it('that were cut short are written again by the next put', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('whole'), { maxBytes: 10 });
    writeFileSync(pathOf(digest), 'who');
    expect(await store.verify(workspace, digest)).toBe('damaged');
    expect(await store.put(workspace, bytes('whole'), { maxBytes: 10 })).toMatchObject({ existed: false });
    expect(await store.verify(workspace, digest)).toBe('intact');
  });

  it('that were altered are found by verify, and healed by the next put', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('whole'), { maxBytes: 10 });
    writeFileSync(pathOf(digest), 'wh0le');
    expect(await store.verify(workspace, digest)).toBe('damaged');
    expect(await store.put(workspace, bytes('whole'), { maxBytes: 10 })).toMatchObject({ existed: true });
    expect(await store.verify(workspace, digest)).toBe('intact');
  });

  it('become young again when the same content is put', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('x'), { maxBytes: 10 });
    utimesSync(pathOf(digest), 1000, 1000);
    await store.put(workspace, bytes('x'), { maxBytes: 10 });
    expect(statSync(pathOf(digest)).mtimeMs).toBeGreaterThan(1_000_000);
  });

  it('that are not ours are not listed', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('x'), { maxBytes: 10 });
    writeFileSync(join(root, 'workspaces', workspace, digest.slice(0, 2), 'notes.txt'), '');
    const found: string[] = [];
    for await (const blob of store.list(workspace)) found.push(blob.digest);
    expect(found).toEqual([digest]);
  });

  it('can be read while they are deleted', async () => {
    const store = await openFileBlobStore(root);
    const { digest } = await store.put(workspace, bytes('x'.repeat(500_000)), { maxBytes: 500_000 });
    const { stream } = await store.open(workspace, digest);
    await store.delete(workspace, digest);
    expect((await buffer(stream)).length).toBe(500_000);
  });
});

describe('the sweep of unfinished files', () => {
  const name = '01234567-89ab-cdef-0123-456789abcdef';

  it('removes those of the grace window, not one millisecond younger, and nothing it does not know', async () => {
    const store = await openFileBlobStore(root);
    const path = join(root, 'incoming', name);
    writeFileSync(path, 'half');
    writeFileSync(join(root, 'incoming', 'notes.txt'), '');
    utimesSync(path, 1000, 1000);
    utimesSync(join(root, 'incoming', 'notes.txt'), 1000, 1000);
    expect(await store.sweepIncoming(1_000_000 + INCOMING_GRACE_MS - 1)).toEqual({ removed: 0, failed: [] });
    expect(await store.sweepIncoming(1_000_000 + INCOMING_GRACE_MS)).toEqual({ removed: 1, failed: [] });
    expect(readdirSync(join(root, 'incoming'))).toEqual(['notes.txt']);
  });

  it('reports what it could not remove', async () => {
    const store = await openFileBlobStore(root);
    mkdirSync(join(root, 'incoming', name));
    expect(await store.sweepIncoming(Date.now() + 2 * INCOMING_GRACE_MS)).toEqual({ removed: 0, failed: [name] });
    expect(existsSync(join(root, 'incoming', name))).toBe(true);
    chmodSync(join(root, 'incoming', name), 0o700);
  });
});

it('any content in any pieces comes back as it was, as does any part of it', async () => {
  const store = await openFileBlobStore(root);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 8 }), fc.nat(), fc.nat(), async (parts, from, count) => {
      const whole = Buffer.concat(parts);
      const put = await store.put(workspace, bytes(...parts), { maxBytes: whole.length });
      expect(put).toMatchObject({ digest: sha256(whole), bytes: whole.length });
      const offset = from % (whole.length + 1);
      const length = count % (whole.length - offset + 1);
      const { stream } = await store.open(workspace, put.digest, { offset, length });
      expect(await buffer(stream)).toEqual(whole.subarray(offset, offset + length));
    }),
    { numRuns: 40 },
  );
});

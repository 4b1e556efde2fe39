import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { newId, type WorkspaceId } from '@firecrew/base';
import type { BlobStore, ListedBlob } from '../blobs/blob-store.ts';

/** One promise of the port; `run` rejects when the given empty store breaks it. */
export interface BlobStoreCase {
  readonly name: string;
  run(store: BlobStore): Promise<void>;
}

const LIMIT = 1_000_000;

async function* chunks(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function listed(store: BlobStore, workspace: WorkspaceId): Promise<ListedBlob[]> {
  const found: ListedBlob[] = [];
  for await (const blob of store.list(workspace)) found.push(blob);
  return found;
}

async function read(store: BlobStore, workspace: WorkspaceId, digest: string, offset: number, length?: number): Promise<string> {
  const { stream } = await store.open(workspace, digest, length === undefined ? { offset } : { offset, length });
  return (await buffer(stream)).toString();
}

const code = (wanted: string) => (error: unknown) => error instanceof Error && 'code' in error && error.code === wanted;

/** Names that must never become part of a path. */
const HOSTILE_NAMES: readonly string[] = [
  '',
  '.',
  '..',
  '../..',
  '/etc/passwd',
  'wsp_../../../../etc00',
  'wsp_0123456789abcde\0',
  'WSP_0123456789ABCDEF',
];

/** The compliance suite of `BlobStore`: every store, real or fake, passes each case on an empty store. */
export const blobStoreCases: readonly BlobStoreCase[] = [
  {
    name: 'gives back what was put, with its digest and size',
    async run(store) {
      const workspace = newId('workspace');
      const put = await store.put(workspace, chunks('hello ', 'world'), { maxBytes: LIMIT });
      assert.deepEqual(put, { digest: sha256('hello world'), bytes: 11, existed: false });
      const { size, stream } = await store.open(workspace, put.digest);
      assert.equal(size, 11);
      assert.equal((await buffer(stream)).toString(), 'hello world');
    },
  },
  {
    name: 'keeps an empty blob',
    async run(store) {
      const workspace = newId('workspace');
      const { digest, bytes } = await store.put(workspace, chunks(), { maxBytes: 0 });
      assert.deepEqual([digest, bytes], [sha256(''), 0]);
      assert.equal(await read(store, workspace, digest, 0), '');
      assert.equal(await store.verify(workspace, digest), 'intact');
    },
  },
  {
    name: 'says that the same content was there before',
    async run(store) {
      const workspace = newId('workspace');
      await store.put(workspace, chunks('twice'), { maxBytes: LIMIT });
      const again = await store.put(workspace, chunks('twi', 'ce'), { maxBytes: LIMIT });
      assert.equal(again.existed, true);
      assert.equal((await listed(store, workspace)).length, 1);
    },
  },
  {
    name: 'keeps workspaces apart: what one has, another neither sees nor deletes',
    async run(store) {
      const [one, other] = [newId('workspace'), newId('workspace')];
      const { digest } = await store.put(one, chunks('mine'), { maxBytes: LIMIT });
      assert.equal(await store.has(other, digest), false);
      assert.equal(await store.delete(other, digest), false);
      assert.deepEqual(await listed(store, other), []);
      await assert.rejects(store.open(other, digest), code('blob_not_found'));
      assert.equal((await store.put(other, chunks('mine'), { maxBytes: LIMIT })).existed, false);
      assert.equal(await store.has(one, digest), true);
    },
  },
  {
    name: 'takes exactly maxBytes, and refuses one more without keeping any',
    async run(store) {
      const workspace = newId('workspace');
      await store.put(workspace, chunks('12345'), { maxBytes: 5 });
      await assert.rejects(store.put(workspace, chunks('123', '456'), { maxBytes: 5 }), code('blob_too_large'));
      assert.deepEqual(
        (await listed(store, workspace)).map((blob) => blob.digest),
        [sha256('12345')],
      );
    },
  },
  {
    name: 'stops reading a source that is too large',
    async run(store) {
      let pulled = 0;
      const endless = async function* (): AsyncGenerator<Uint8Array> {
        for (;;) {
          pulled += 1;
          yield Buffer.alloc(100);
        }
      };
      await assert.rejects(store.put(newId('workspace'), endless(), { maxBytes: 250 }), code('blob_too_large'));
      assert.equal(pulled, 3);
    },
  },
  {
    name: 'refuses content other than announced without keeping it',
    async run(store) {
      const workspace = newId('workspace');
      await assert.rejects(store.put(workspace, chunks('b'), { expectDigest: sha256('a'), maxBytes: LIMIT }), code('blob_digest_mismatch'));
      assert.deepEqual(await listed(store, workspace), []);
      await store.put(workspace, chunks('a'), { expectDigest: sha256('a'), maxBytes: LIMIT });
    },
  },
  {
    name: 'keeps nothing of a source that breaks off',
    async run(store) {
      const workspace = newId('workspace');
      const broken = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.from('half');
        throw new Error('line went dead');
      };
      await assert.rejects(store.put(workspace, broken(), { maxBytes: LIMIT }), /line went dead/);
      assert.deepEqual(await listed(store, workspace), []);
      assert.equal(await store.has(workspace, sha256('half')), false);
    },
  },
  {
    name: 'reads parts, up to the last byte and not beyond',
    async run(store) {
      const workspace = newId('workspace');
      const { digest } = await store.put(workspace, chunks('0123456789'), { maxBytes: LIMIT });
      assert.equal(await read(store, workspace, digest, 3, 4), '3456');
      assert.equal(await read(store, workspace, digest, 8), '89');
      assert.equal(await read(store, workspace, digest, 0, 10), '0123456789');
      assert.equal(await read(store, workspace, digest, 10), '');
      assert.equal(await read(store, workspace, digest, 4, 0), '');
      for (const range of [{ offset: 11 }, { offset: -1 }, { offset: 5, length: 6 }, { offset: 5, length: -1 }, { offset: 0.5 }]) {
        await assert.rejects(store.open(workspace, digest, range), code('blob_range_invalid'));
      }
    },
  },
  {
    name: 'tells a missing blob from an intact one',
    async run(store) {
      const workspace = newId('workspace');
      const { digest } = await store.put(workspace, chunks('x'), { maxBytes: LIMIT });
      assert.equal(await store.verify(workspace, digest), 'intact');
      assert.equal(await store.verify(workspace, sha256('y')), 'missing');
      assert.equal(await store.has(workspace, sha256('y')), false);
      await assert.rejects(store.open(workspace, sha256('y')), code('blob_not_found'));
    },
  },
  {
    name: 'deletes once',
    async run(store) {
      const workspace = newId('workspace');
      const { digest } = await store.put(workspace, chunks('x'), { maxBytes: LIMIT });
      assert.equal(await store.delete(workspace, digest), true);
      assert.equal(await store.delete(workspace, digest), false);
      assert.equal(await store.has(workspace, digest), false);
    },
  },
  {
    name: 'lists digests, sizes and times',
    async run(store) {
      const workspace = newId('workspace');
      for (const text of ['one', 'three']) await store.put(workspace, chunks(text), { maxBytes: LIMIT });
      const found = await listed(store, workspace);
      assert.deepEqual(
        new Map(found.map(({ digest, bytes }) => [digest, bytes])),
        new Map([
          [sha256('one'), 3],
          [sha256('three'), 5],
        ]),
      );
      assert.ok(found.every(({ storedAtMs }) => storedAtMs > 0));
    },
  },
  {
    name: 'stores the same content from many writers at once',
    async run(store) {
      const workspace = newId('workspace');
      const puts = await Promise.all(Array.from({ length: 8 }, () => store.put(workspace, chunks('same'), { maxBytes: LIMIT })));
      assert.deepEqual(new Set(puts.map(({ digest }) => digest)), new Set([sha256('same')]));
      assert.equal(await store.verify(workspace, sha256('same')), 'intact');
    },
  },
  {
    name: 'refuses workspace ids and digests of another form everywhere',
    async run(store) {
      const workspace = newId('workspace');
      for (const name of HOSTILE_NAMES) {
        // A caller without types is who this protects from.
        const bad = name as WorkspaceId;
        await assert.rejects(store.put(bad, chunks('x'), { maxBytes: LIMIT }), code('blob_workspace_invalid'));
        await assert.rejects(store.has(bad, sha256('x')), code('blob_workspace_invalid'));
        await assert.rejects(listed(store, bad), code('blob_workspace_invalid'));
        for (const attempt of [
          store.has(workspace, name),
          store.open(workspace, name),
          store.delete(workspace, name),
          store.verify(workspace, name),
        ]) {
          await assert.rejects(attempt, code('blob_digest_invalid'));
        }
      }
      await assert.rejects(store.has(workspace, sha256('x').toUpperCase()), code('blob_digest_invalid'));
      await assert.rejects(store.put(workspace, chunks('x'), { expectDigest: '../x', maxBytes: LIMIT }), code('blob_digest_invalid'));
    },
  },
];

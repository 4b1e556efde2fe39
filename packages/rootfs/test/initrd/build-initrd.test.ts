import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { buildInitrd, writeCpio } from '../../src/index.ts';

it('holds guest-init, and modules in the order they are loaded in', () => {
  const modules = ['virtio_ring', 'virtio'].map((name) => ({ name, content: Buffer.from(name) }));
  const initrd = buildInitrd(Buffer.from('init'), modules);
  expect(gunzipSync(initrd)).toEqual(
    writeCpio([
      { path: 'init', mode: 0o100755, content: Buffer.from('init') },
      { path: 'modules', mode: 0o40755 },
      { path: 'modules/list', mode: 0o100644, content: Buffer.from('/modules/virtio_ring.ko\n/modules/virtio.ko\n') },
      { path: 'modules/virtio_ring.ko', mode: 0o100644, content: Buffer.from('virtio_ring') },
      { path: 'modules/virtio.ko', mode: 0o100644, content: Buffer.from('virtio') },
    ]),
  );
  expect(buildInitrd(Buffer.from('init'), modules)).toEqual(initrd);
});

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ArtifactFacts, ArtifactNames, DEFAULT_REFERENCES, ImageStore } from '@firecrew/rootfs';
import type { Driver } from '@firecrew/vmm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KnownBackends } from '../../src/agent/known-backends.ts';
import { probeCapabilities } from '../../src/agent/probe-capabilities.ts';
import { VmSource } from '../../src/vm/vm-source.ts';

let store: string;
beforeEach(async () => {
  store = await mkdtemp(join(tmpdir(), 'firecrew-source-'));
});
afterEach(() => rm(store, { recursive: true, force: true }));

const architecture = 'amd64';
const PAYLOAD: ArtifactFacts = {
  architecture,
  kind: 'payload',
  format: 'squashfs',
  mountPoint: '/opt',
  nodeVersion: '24',
  unpackedBytes: 1,
};

const BACKENDS = new KnownBackends().all;

/** Keeps an artifact under a name; its kind does not matter to a look by name. */
async function keep(name: string): Promise<string> {
  const { id } = await new ImageStore(store).add(async ({ target }) => {
    await writeFile(join(target, 'file'), name);
    return PAYLOAD;
  });
  await new ArtifactNames(store).set(name, id);
  return id;
}

/** A source with a driver that is probed with what was found. */
function sourceOf(statusOf: (reference: string) => string | undefined, references = DEFAULT_REFERENCES) {
  const fetcher = { statusOf, isComing: (reference: string) => statusOf(reference) !== undefined };
  const probed: string[] = [];
  const driverOf = (artifacts: { readonly image: string }): Driver => ({
    name: 'qemu',
    probe: async () => {
      probed.push(artifacts.image);
      return { available: true, isolation: 'vm', detail: 'a probe boot worked' };
    },
    boot: () => Promise.reject(new Error('not here')),
  });
  return { probed, source: new VmSource({ name: 'qemu', store, references, fetcher, driverOf, clock: () => 0 }) };
}

describe('the source of VMs', () => {
  it('says what the store lacks and what is done about it, and is probed once all is there', async () => {
    const { source, probed } = sourceOf((reference) => (reference === 'kernel' ? 'it is on its way' : undefined));
    const says = async () => (await probeCapabilities({ drivers: [source], backends: BACKENDS, agentVersion: '1' })).unavailable;
    expect(await says()).toEqual([
      { driver: 'qemu', detail: `the store ${store} has nothing named kernel; it is on its way`, coming: true },
    ]);
    await keep('kernel');
    expect(await says()).toEqual([{ driver: 'qemu', detail: `the store ${store} has nothing named payload` }]);
    await keep('payload');
    const image = await keep('default');
    expect(await probeCapabilities({ drivers: [source], backends: BACKENDS, agentVersion: '1' })).toMatchObject({
      unavailable: [],
      drivers: [{ driver: 'qemu', backends: ['command'], detail: 'a probe boot worked' }],
    });
    await source.probe();
    expect(probed).toEqual([image]);
    expect(source.artifactsOf(null)?.image).toBe(image);
  });

  it('is made of ids as well, and of nothing that only its name is here of', async () => {
    const [kernel, payload] = [await keep('kernel'), await keep('payload')];
    const image = `sha256:${'0'.repeat(64)}`;
    const { source } = sourceOf(() => undefined, { kernel, payload, image });
    expect((await source.probe()).detail).toBe(`the store ${store} has no image ${image}`);
    await new ArtifactNames(store).set('default', image);
    const named = sourceOf(() => undefined, { kernel, payload, image: 'default' }).source;
    expect((await named.probe()).detail).toBe(`the store ${store} has no image ${image}, which default is`);
  });

  it('is probed once for each image that a backend names, and a VM is made of the one that its backend names', async () => {
    const { source, probed } = sourceOf(() => undefined);
    const [, , image] = [await keep('kernel'), await keep('payload'), await keep('default')];
    const absent = await source.probeImage('tools');
    expect(absent).toMatchObject({ available: false, detail: `the store ${store} has nothing named tools` });
    const tools = await keep('tools');
    await new ArtifactNames(store).set('same', tools);
    for (const name of ['tools', 'same', 'tools', tools]) expect(await source.probeImage(name)).toMatchObject({ available: true });
    expect([source.artifactsOf('tools')?.image, source.artifactsOf('same')?.image]).toEqual([tools, tools]);
    expect(source.artifactsOf(null)).toBeUndefined();
    await source.probe();
    expect(probed).toEqual([tools, image]);
    expect(source.artifactsOf(null)?.image).toBe(image);
  });
});

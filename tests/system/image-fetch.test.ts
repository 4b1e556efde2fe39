import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ArtifactFacts,
  ArtifactNames,
  BZIMAGE_FILE,
  DEFAULT_IMAGE_NAME,
  findBootArtifacts,
  ImageStore,
  INITRD_FILE,
  KERNEL_NAME,
  openBootFiles,
  PAYLOAD_FILE,
  PAYLOAD_NAME,
  piecesFolder,
  ROOT_FILE,
  VMLINUX_FILE,
} from '@firecrew/rootfs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';
import { SlowLink } from './support/slow-link.ts';
import { until } from './support/until.ts';
import { OTHER_IMAGE_NAME, testVmStore } from './support/vm-store.ts';

const MIB = 1024 * 1024;
/** More than the buffers of a connection hold: what is in them still arrives when the server is gone. */
const IMAGE_BYTES = 32 * MIB;
/** An emulated VM on a busy machine. */
const BOOT_MS = 200_000;

/** What the node of an installation says about a driver that it was given. */
async function saysOf(
  installation: Installation,
  driver: 'qemu',
): Promise<{ readonly usable: boolean; readonly detail: string } | undefined> {
  const capabilities = (await installation.client.fleet()).nodes[0]?.capabilities;
  const usable = capabilities?.drivers.find((item) => item.driver === driver);
  if (usable !== undefined) return { usable: true, detail: usable.detail };
  const unusable = capabilities?.unavailable?.find((item) => item.driver === driver);
  return unusable === undefined ? undefined : { usable: false, detail: unusable.detail };
}

/** Keeps an artifact of these files under a name. */
async function keep(root: string, name: string, facts: ArtifactFacts, files: Readonly<Record<string, Buffer>>) {
  const stored = await new ImageStore(root).add(async ({ target }) => {
    for (const [file, bytes] of Object.entries(files)) await writeFile(join(target, file), bytes);
    return facts;
  });
  await new ArtifactNames(root).set(name, stored.id);
  return stored;
}

/** Artifacts of the right shape that boot nothing. */
async function makeStore(root: string) {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const small = (): Buffer => randomBytes(10_000);
  const kernelFiles = { [BZIMAGE_FILE]: small(), [VMLINUX_FILE]: small(), [INITRD_FILE]: Buffer.alloc(0) };
  await keep(root, KERNEL_NAME, { kind: 'kernel', architecture, version: '6.1.0', modules: [], builtIn: [], missing: [] }, kernelFiles);
  const payload = { kind: 'payload', format: 'squashfs', mountPoint: '/opt/firecrew', nodeVersion: '24.0.0', unpackedBytes: 1 } as const;
  await keep(root, PAYLOAD_NAME, { ...payload, architecture }, { [PAYLOAD_FILE]: small() });
  const image: ArtifactFacts = {
    ...{ kind: 'image', format: 'squashfs', source: { kind: 'directory' }, npm: [], environment: {}, user: '' },
    ...{ workingDirectory: '/', entryCount: 1, times: { kind: 'kept' }, architecture },
  };
  return await keep(root, DEFAULT_IMAGE_NAME, image, { [ROOT_FILE]: randomBytes(IMAGE_BYTES) });
}

describe.each(['node', 'server'] as const)('a node whose store lacks what its VMs are made of', { timeout: 60_000 }, (killed) => {
  let folder: string;
  let link: SlowLink;
  let installation: Installation;
  let image: Awaited<ReturnType<typeof makeStore>>;
  const at = (name: string) => join(folder, name);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcs-images-'));
    await mkdir(at('own'));
    image = await makeStore(at('offered'));
    link = await SlowLink.start(3 * MIB);
    installation = await Installation.start({
      bubblewrap: 'auto',
      server: { images: at('offered') },
      node: { qemu: { accelerator: 'tcg', store: at('own') }, imageFetch: { diskReserveMib: 0 } },
      nodeServerFile: (file) => link.nodeServerFile(file),
    });
  });
  afterAll(async () => {
    await installation.stop();
    await link.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it(`gets it from its server, goes on where it was when the ${killed} was killed, and says meanwhile why it boots none`, async () => {
    const piece = join(at('own'), piecesFolder(image.id), 'target', ROOT_FILE);
    await until('a transfer that is held', () => link.isHolding);
    const lengthOf = async () => (await stat(piece).catch(() => undefined))?.size ?? 0;
    // What was let through arrives a little later.
    await until('the kept bytes', async () => (await lengthOf()) > 2 * MIB);
    const said = await until('what the node says', async () => {
      const says = await saysOf(installation, 'qemu');
      return says?.detail.includes(DEFAULT_IMAGE_NAME) === true ? says : undefined;
    });
    expect(said).toMatchObject({
      usable: false,
      detail: expect.stringMatching(/has nothing named default; it is being fetched from the server$/),
    });

    await installation[killed].end('SIGKILL');
    link.allow(100 * MIB);
    installation[killed].start();
    const ids = await until('all artifacts', async () => await findBootArtifacts(at('own')));

    expect(ids).toEqual(await findBootArtifacts(at('offered')));
    await (await openBootFiles(at('own'), ids)).close();
    const [root = { sha256: '' }] = image.manifest.files;
    const ranges = link.transfers.filter(({ sha256 }) => sha256 === root.sha256).map(({ range }) => range);
    expect(ranges).toEqual([null, expect.stringMatching(/^bytes=\d+-$/)]);
    const from = Number(/\d+/.exec(ranges[1] ?? '')?.[0]);
    expect(from).toBeGreaterThan(2 * MIB);
    expect(from).toBeLessThan(IMAGE_BYTES);
    expect(await stat(join(at('own'), piecesFolder(image.id))).catch(() => 'gone')).toBe('gone');
    const after = await until('a new look at what the node can boot', async () => {
      const says = await saysOf(installation, 'qemu');
      return says !== undefined && !says.detail.includes('has nothing named') ? says : undefined;
    });
    // These artifacts boot nothing: the boot was tried, and that is what is told now.
    expect(after).toMatchObject({ usable: false });
    expect(await readFile(join(installation.home, 'log/node-agent.log'), 'utf8')).not.toContain('image_digest_wrong');
  });
});

const store = await testVmStore();
const lacking = 'missing' in store ? ` (not run: ${store.missing})` : '';

/** A backend with an image of its own. */
const BACKEND = {
  name: 'other-agent',
  label: 'Another image',
  image: OTHER_IMAGE_NAME,
  drivers: ['qemu'],
  harness: { kind: 'command' },
  hosts: [],
  modelRoute: null,
  credentialContract: { variables: [] },
  scaffolding: [],
  demand: { memoryMib: 512, diskMib: 512 },
};

describe.skipIf(lacking !== '')(`a node that gets real images from its server${lacking}`, { timeout: 2 * BOOT_MS + 20_000 }, () => {
  it('boots VMs of each that a backend names without being started anew, and a mission runs in that of its backend', async () => {
    if ('missing' in store) throw new Error(store.missing);
    const own = await mkdtemp(join(tmpdir(), 'fcs-images-'));
    const installation = await Installation.start({
      bubblewrap: 'auto',
      server: { images: store.root, backends: [BACKEND] },
      node: { qemu: { accelerator: 'tcg', store: own }, imageFetch: { diskReserveMib: 0 } },
    });
    try {
      const bootable = async () => {
        const { nodes } = await installation.client.fleet();
        const found = nodes[0]?.capabilities?.drivers.find(({ driver }) => driver === 'qemu');
        return found?.backends.length === 2 ? found : undefined;
      };
      const says = await until('a node that boots both images', bootable, BOOT_MS);
      expect(says).toMatchObject({ backends: ['command', BACKEND.name], lacking: [] });
      expect(await findBootArtifacts(own)).toEqual(await findBootArtifacts(store.root));
      const repository = await makeRepository(join(installation.home, 'scratch', 'r'), { 'a.txt': 'a\n' });
      const agent = { command: 'echo image: $(cat /etc/image-name) | tee answer.txt', backend: BACKEND.name };
      const { id } = await installation.startMission({ repository, agent: agent.command, extra: { agent, driver: 'qemu' } });
      const { end } = await installation.ended(id, BOOT_MS);
      expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed' });
      expect((await installation.log(id, 1)).toString()).toContain(`image: ${OTHER_IMAGE_NAME}`);
    } finally {
      await installation.stop();
      await rm(own, { recursive: true, force: true });
    }
  });
});

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BootSpec, GuestOwner } from '../../src/port/driver.ts';
import { withoutUnreachable } from '../../src/process-driver/reachable-by.ts';

const OTHER_USER: GuestOwner = { uid: 210_001, gid: 210_001 };

describe('what a guest is made of', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'firecrew-binds-'));
    await chmod(folder, 0o711);
    for (const name of ['open', 'closed']) await mkdir(join(folder, name, 'bin'), { recursive: true });
    await chmod(join(folder, 'closed'), 0o700);
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  async function boundFolders(owner?: GuestOwner): Promise<{ binds: string[]; path: string }> {
    const binds = ['open', 'closed', 'missing'].map((name) => join(folder, name, 'bin'));
    const spec: BootSpec = {
      vmId: 'vm',
      folder: join(folder, 'vm'),
      guestAgent: { node: '/n', bundle: '/b' },
      bindPaths: binds.map((path) => ({ source: path, target: path })),
      path: ['/usr/bin', ...binds].join(':'),
      caBundle: null,
      limits: { memoryMib: 64, diskMib: 64 },
      attemptMarker: 'turn.1.1',
      allowUnisolated: false,
      onStream: () => undefined,
      onRefused: () => undefined,
      ...(owner === undefined ? {} : { owner }),
    };
    const { bindPaths, path } = await withoutUnreachable(spec);
    return { binds: bindPaths.map(({ source }) => source), path };
  }

  it('leaves out the folders that its user cannot reach', async () => {
    const open = join(folder, 'open', 'bin');
    expect(await boundFolders(OTHER_USER)).toEqual({ binds: [open], path: `/usr/bin:${open}` });
  });

  it('is what was asked for where the guest runs as this user', async () => {
    expect((await boundFolders()).binds).toHaveLength(3);
  });
});

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BootSpec, GuestOwner } from '../../src/port/driver.ts';
import { bubblewrapOptions } from '../../src/process-driver/bubblewrap-options.ts';
import { guestFolder } from '../../src/process-driver/guest-layout.ts';

const OTHER_USER: GuestOwner = { uid: 210_001, gid: 210_001 };

describe('the options of bubblewrap', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'firecrew-binds-'));
    await chmod(folder, 0o711);
    for (const name of ['open', 'closed']) await mkdir(join(folder, name, 'bin'), { recursive: true });
    await chmod(join(folder, 'closed'), 0o700);
  });
  afterEach(async () => await rm(folder, { recursive: true, force: true }));

  async function boundSources(owner?: GuestOwner): Promise<string[]> {
    const spec: BootSpec = {
      vmId: 'vm',
      folder: join(folder, 'vm'),
      guestAgent: { node: '/n', bundle: '/b' },
      bindPaths: ['open', 'closed', 'missing'].map((name) => ({ source: join(folder, name, 'bin'), target: join(folder, name, 'bin') })),
      path: '',
      caBundle: null,
      limits: { memoryMib: 64, diskMib: 64 },
      attemptMarker: 'turn.1.1',
      allowUnisolated: false,
      onStream: () => undefined,
      onRefused: () => undefined,
      ...(owner === undefined ? {} : { owner }),
    };
    const options = await bubblewrapOptions(spec, guestFolder(spec.folder), true);
    return options.filter((option, index) => options[index - 1] === '--ro-bind-try' && option.startsWith(folder));
  }

  it('leave out what the user of the guest cannot reach, which would end bubblewrap', async () => {
    expect(await boundSources(OTHER_USER)).toEqual([join(folder, 'open', 'bin')]);
  });

  it('bind everything for a guest that runs as this user', async () => {
    expect(await boundSources()).toHaveLength(3);
  });
});

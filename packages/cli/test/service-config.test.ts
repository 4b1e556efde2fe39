import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openHome } from '../src/home/open-home.ts';
import { mergeSettings } from '../src/settings/settings.ts';
import { nodeConfigOf, writeServerConfig } from '../src/supervisor/service-config.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-home-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the configuration of the services of a home', () => {
  it('offers the images of the home to its nodes', () => {
    const home = openHome(join(folder, 'h'));
    const file = writeServerConfig(home, {}, { connectionString: 'postgresql://h/d' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ images: join(home.paths.root, 'images') });
  });

  it('says what VMs of the node are made of, and what fetching leaves free', () => {
    const home = openHome(join(folder, 'h'));
    const image = `sha256:${'a'.repeat(64)}`;
    const value = { qemu: { accelerator: 'tcg', kernel: 'kernel-6.1', image }, imageFetch: { diskReserveMib: 0 } };
    expect(nodeConfigOf(home, mergeSettings([{ name: 'config.json', value }]))).toMatchObject({
      qemu: { accelerator: 'tcg', kernel: 'kernel-6.1', image, store: join(home.paths.root, 'images') },
      imageFetch: { diskReserveMib: 0 },
    });
  });

  it("gives server and node the operator's proxy alike, and where its credential is", () => {
    const home = openHome(join(folder, 'h'));
    const egressProxy = { url: 'http://proxy.example.test:3128', credential: { file: '/etc/login' }, noProxy: ['.corp.test'] };
    const settings = mergeSettings([{ name: 'config.json', value: { egressProxy } }]);
    expect(nodeConfigOf(home, settings)).toMatchObject({ egressProxy });
    const file = writeServerConfig(home, settings, { connectionString: 'postgresql://h/d' });
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ egressProxy });
  });

  it.each(['../kernel', 'Kernel', 'sha256:abc', 'abcdef'])('refuses %j as a name of what VMs are made of', (kernel) => {
    const value = { qemu: { accelerator: 'tcg', kernel } };
    expect(() => mergeSettings([{ name: 'config.json', value }])).toThrow(/qemu\.kernel: must be a name of the image store, or an id/);
  });
});

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identifyProcess } from '@firecrew/base';
import { afterAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { eventually, TestHome } from './command.ts';

const home = new TestHome();
const files = join(home.folder, 'files');
mkdirSync(files);
writeFileSync(join(files, 'a'), 'content\n');
afterAll(async () => await home.remove());

const viewSchema = z.object({ id: z.string(), kind: z.string(), names: z.array(z.string()), folder: z.string() });
const listSchema = z.object({ artifacts: z.array(viewSchema), damaged: z.array(z.object({ id: z.string() })) });
const list = async () => listSchema.parse(JSON.parse((await home.run('image', 'list', '--json')).stdout));

const missing = spawnSync('tar2sqfs', ['--version']).error === undefined ? undefined : 'squashfs-tools-ng is not installed';
const itBuilds = (name: string, test: () => Promise<void>): void =>
  void (missing === undefined ? it(name, test) : it.skip(`${name} (${missing})`, () => undefined));

describe('images of a home', () => {
  it('are none at first, and the command says how one is made', async () => {
    expect(await home.run('image', 'list')).toMatchObject({ code: 0, stdout: expect.stringContaining('firecrew image build NAME') });
    expect(await home.run('image', 'verify')).toMatchObject({ code: 0, stdout: 'there is nothing to verify\n' });
  });

  itBuilds('are built, listed, verified, moved and removed', async () => {
    const built = await home.run('image', 'build', 'tools', '--from', files);
    expect(built).toMatchObject({ code: 0, stderr: expect.stringContaining('reading the folder') });
    const [view] = (await list()).artifacts;
    const id = view?.id ?? '';
    expect(built.stdout).toContain(id);
    expect(view).toMatchObject({ kind: 'image', names: ['tools'] });
    expect(await home.run('image', 'verify', 'tools')).toMatchObject({ code: 0, stdout: `ok       ${id}\n` });
    const file = join(home.folder, 'tools.tar');
    expect((await home.run('image', 'export', 'tools', '-o', file)).code).toBe(0);
    const before = readFileSync(file);
    expect(await home.run('image', 'export', 'tools', '-o', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('export_failed'),
    });
    expect(readFileSync(file)).toEqual(before);
    expect((await home.run('image', 'remove', 'tools')).stdout).toBe(`removed ${id}\n`);
    expect((await home.run('image', 'import', file, '--name', 'again', '--expect', id)).code).toBe(0);
    expect((await list()).artifacts).toMatchObject([{ id, names: ['again'] }]);
    await home.run('image', 'remove', id);
    expect((await list()).artifacts).toEqual([]);
  });

  itBuilds('that have two names stay until both are gone', async () => {
    await home.run('image', 'build', 'one', '--from', files);
    await home.run('image', 'build', 'two', '--from', files);
    expect((await home.run('image', 'remove', 'one')).stdout).toContain('stays as two');
    expect((await list()).artifacts).toMatchObject([{ names: ['two'] }]);
    await home.run('image', 'remove', 'two');
    expect((await list()).artifacts).toEqual([]);
  });

  itBuilds('that are damaged are told by list and verify, and can be removed', async () => {
    await home.run('image', 'build', 'tools', '--from', files);
    const [view] = (await list()).artifacts;
    const file = join(view?.folder ?? '', 'root.squashfs');
    chmodSync(file, 0o600);
    writeFileSync(file, 'something else');
    expect(await home.run('image', 'verify')).toMatchObject({ code: 1, stdout: expect.stringContaining('image_digest_wrong') });
    const manifest = join(view?.folder ?? '', 'manifest.json');
    chmodSync(manifest, 0o600);
    writeFileSync(manifest, '{}');
    expect(await home.run('image', 'list')).toMatchObject({ code: 1, stdout: expect.stringContaining('damaged') });
    expect((await home.run('image', 'remove', 'tools')).code).toBe(0);
    expect(await home.run('image', 'list')).toMatchObject({ code: 0 });
  });

  itBuilds('without a name are removed by the second pass of the collector', async () => {
    await home.run('image', 'build', 'tools', '--from', files);
    writeFileSync(join(files, 'b'), 'more\n');
    await home.run('image', 'build', 'tools', '--from', files);
    expect((await list()).artifacts).toHaveLength(2);
    expect((await home.run('image', 'gc', '--grace', '1ms')).stdout).toMatch(/^waits {4}sha256:[0-9a-f]{64}\n$/);
    expect((await home.run('image', 'gc', '--grace', '1ms')).stdout).toMatch(/^removed {2}sha256:[0-9a-f]{64}\n$/);
    expect((await home.run('image', 'gc')).stdout).toBe('everything has a name or is in use\n');
    expect((await list()).artifacts).toHaveLength(1);
  });

  itBuilds('that the VMs of an attempt are made of stay until it has ended', async () => {
    writeFileSync(join(files, 'u'), 'of an attempt\n');
    await home.run('image', 'build', 'used', '--from', files);
    const { id = '' } = (await list()).artifacts.find(({ names }) => names.includes('used')) ?? {};
    const folder = join(home.root, 'node/turns/trn_1.1');
    mkdirSync(folder, { recursive: true });
    const write = (name: string, value: unknown): void => writeFileSync(join(folder, name), JSON.stringify(value));
    const none = `sha256:${'0'.repeat(64)}`;
    const launch = (store: string) => ({ qemu: { store, artifacts: { kernel: none, payload: none, image: id } }, layers: null });
    const shim = identifyProcess(process.pid);
    write('shim.json', { generation: 1, ...shim });
    write('spec.json', { driver: 'qemu', turnId: 'trn_1' });
    write('launch.json', launch(join(home.root, 'images')));
    expect(await home.run('image', 'remove', 'used')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^firecrew: image_in_use: sha256:[0-9a-f]{64} is what the VMs of attempt trn_1\.1 are made of/),
    });
    // Its name leads elsewhere meanwhile; it stays for the attempt all the same.
    writeFileSync(join(files, 'c'), 'even more\n');
    await home.run('image', 'build', 'used', '--from', files);
    for (const _pass of [1, 2]) await home.run('image', 'gc', '--grace', '1ms');
    expect((await list()).artifacts.filter((view) => view.id === id)).toMatchObject([{ names: [] }]);

    const file = join(home.folder, 'used.tar');
    await home.run('image', 'export', id, '-o', file);
    writeFileSync(join(folder, 'launch.json'), '{');
    for (const words of [['remove', id], ['gc']])
      expect(await home.run('image', ...words)).toMatchObject({ code: 1, stderr: expect.stringContaining('image_use_unknown') });
    /** Files of an attempt by which the image is not used any more, or never was. */
    const unused: readonly (readonly [string, unknown])[] = [
      ['launch.json', launch('/elsewhere/images')],
      ['spec.json', { driver: 'process' }],
      ['shim.json', { generation: 1, ...shim, startTicks: '1' }],
      ['outcome.json', {}],
    ];
    for (const [name, value] of unused) {
      write('shim.json', { generation: 1, ...shim });
      write('spec.json', { driver: 'qemu' });
      write('launch.json', launch(join(home.root, 'images')));
      expect((await home.run('image', 'remove', id)).code, name).toBe(1);
      write(name, value);
      expect((await home.run('image', 'remove', id)).stdout, name).toBe(`removed ${id}\n`);
      expect((await home.run('image', 'import', file)).stdout).toContain(id);
    }
    rmSync(folder, { recursive: true });
    for (const left of [id, 'used']) expect((await home.run('image', 'remove', left)).code).toBe(0);
  });

  itBuilds('that are given up with Ctrl-C leave nothing', async () => {
    // A reader that waits for ever: the builder waits with it.
    const slow = join(home.folder, 'slow');
    mkdirSync(slow);
    writeFileSync(join(slow, 'tar'), '#!/bin/sh\nsleep 60\n', { mode: 0o755 });
    const PATH = `${slow}:${home.env.PATH}`;
    const started = home.start(['image', 'build', 'slow', '--from', files], { env: { PATH, FIRECREW_CALLER_PATH: PATH } });
    await eventually(() => (started.output().includes('reading the folder') ? true : undefined));
    started.signal('SIGINT');
    expect(await started.ended).toMatchObject({ code: 3, stderr: expect.stringContaining('nothing was kept') });
    expect(readdirSync(join(home.root, 'images')).filter((name) => name.startsWith('making-'))).toEqual([]);
  });

  it('writes the payload as a folder that an image of somebody else can hold', async () => {
    const out = join(home.folder, 'rootfs/opt/firecrew');
    const { code, stdout, stderr } = await home.run('image', 'payload', '--out', out, '--json');
    expect(code, stderr).toBe(0);
    const said = JSON.parse(stdout) as { files: string[] };
    expect(said).toMatchObject({ folder: out, mountPoint: '/opt/firecrew' });
    expect(said.files).toEqual(expect.arrayContaining(['bin/node', 'guest-agent.cjs', 'lib/ld.so', 'run']));
    for (const name of said.files) expect(statSync(join(out, name)).mode & 0o777).toBe(/^(?:bin|lib)\//.test(name) ? 0o755 : 0o644);
    expect(readFileSync(join(out, 'run'), 'utf8').split('\n')[0]).toBe('/opt/firecrew/bin/node');
  });

  it('of set-ups that a node keeps are collected by its bounds', async () => {
    const layer = (digit: string): string => join(home.folder, 'home/node/layers', digit.repeat(64));
    expect((await home.run('image', 'gc')).stdout).toBe('everything has a name or is in use\n');
    for (const digit of ['a', 'b']) {
      mkdirSync(layer(digit), { recursive: true });
      writeFileSync(join(layer(digit), 'disk'), Buffer.alloc(1024 * 1024, 1));
    }
    utimesSync(layer('a'), 1, 1);
    expect((await home.run('image', 'gc')).stdout).toBe(`removed  the layer ${'a'.repeat(64)} of a set-up\n`);
    writeFileSync(join(home.folder, 'home/config.json'), '{ "setupLayers": { "unusedDays": 0.0000001 } }\n');
    expect(JSON.parse((await home.run('image', 'gc', '--json')).stdout)).toMatchObject({ layers: ['b'.repeat(64)] });
    expect(existsSync(layer('b'))).toBe(false);
  });

  /** [words, code] */
  const WRONG: readonly (readonly [string, string])[] = [
    ['image build', 'usage_wrong'],
    ['image build --from . --recipe x', 'usage_wrong'],
    ['image build UPPER --from .', 'image_name_wrong'],
    ['image build --recipe none.json', 'recipe_unreadable'],
    ['image build --from nothing-like-this', 'usage_wrong'],
    ['image kernel --from none --init none', 'source_unreadable'],
    ['image payload --level 99', 'usage_wrong'],
    ['image payload --level 3 --out x', 'usage_wrong'],
    ['image payload --out .', 'usage_wrong'],
    ['image verify nothing', 'image_unknown'],
    ['image remove nothing', 'image_unknown'],
    ['image export nothing -o x', 'image_unknown'],
    ['image import none.tar', 'source_unreadable'],
    ['image import none.tar --expect abc', 'usage_wrong'],
    ['image gc --grace soon', 'usage_wrong'],
  ];
  it.each(WRONG)('%s is refused with %s', async (words, code) => {
    const { stderr, stdout } = await home.run(...words.split(' '));
    expect(stderr).toContain(`firecrew: ${code}: `);
    expect(stdout).toBe('');
    expect(existsSync(join(home.folder, 'x'))).toBe(false);
  });
});

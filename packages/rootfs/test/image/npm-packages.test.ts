import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { codeOf } from '@firecrew/base';
import { afterEach, beforeEach, describe, expect, vi } from 'vitest';
import { build, readSquashfs } from '../support/build.ts';
import { makeTar, type RawEntry } from '../support/make-tar.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith } from '../support/tools.ts';

const at = temporaryFolder();
const it = itWith('tar2sqfs', 'tar', 'npm');

const TARBALLS: Readonly<Record<string, readonly RawEntry[]>> = {
  '@scope/tool': [
    { name: 'package/package.json', content: JSON.stringify({ name: '@scope/tool', version: '1.2.3', scripts: { install: 'exit 1' } }) },
    { name: 'package/bin/tool', content: '#!/bin/sh\n', mode: 0o755, uid: 1000 },
    { name: 'package/data', content: 'x', mode: 0o600 },
  ],
  linked: [{ name: 'package/link', type: '2', link: '/etc/passwd' }],
  outside: [{ name: 'package/../../etc/passwd', content: 'x' }],
};

let server: Server;
const asked: string[] = [];

/** A registry with one version of each package. */
function serveRegistry(): Server {
  return createServer((request, response) => {
    asked.push(request.url ?? '');
    const { port } = server.address() as AddressInfo;
    const name = decodeURIComponent((request.url ?? '/').slice(1)).replace(/\.tgz$/, '');
    const entries = TARBALLS[name];
    if (entries === undefined) return void response.writeHead(404).end('{}');
    const tarball = gzipSync(makeTar(entries));
    if (request.url?.endsWith('.tgz')) return void response.end(tarball);
    const dist = {
      tarball: `http://127.0.0.1:${port}/${encodeURIComponent(name)}.tgz`,
      integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}`,
    };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name, 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': { name, version: '1.2.3', dist } } }));
  });
}

beforeEach(async () => {
  asked.length = 0;
  server = serveRegistry();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  for (const name of Object.keys(process.env)) if (/^npm_(config|lifecycle|command)/i.test(name)) vi.stubEnv(name, undefined);
  writeFileSync(at('npmrc'), `registry=http://127.0.0.1:${port}/\ncache=${at('cache')}\nfetch-retries=0\n`);
  vi.stubEnv('npm_config_userconfig', at('npmrc'));
  mkdirSync(at('base'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await new Promise((resolve) => server.close(resolve));
});

const withPackage = async (spec: string, into = '/opt/tool') =>
  await build(at(), { source: { kind: 'directory', path: at('base'), owners: 'root' }, npm: [{ spec, into }] });

describe('packages of npm in an image', () => {
  it("come from the caller's registry as they are, for root, with none of their scripts run", async () => {
    const { facts, file } = await withPackage('@scope/tool@1.2.3');
    const found = await readSquashfs(file);
    expect([...found.keys()].sort()).toEqual([
      '',
      'opt',
      'opt/tool',
      'opt/tool/bin',
      'opt/tool/bin/tool',
      'opt/tool/data',
      'opt/tool/package.json',
    ]);
    expect(found.get('opt/tool/bin/tool')).toMatchObject({ mode: 0o755, uid: 0 });
    expect(found.get('opt/tool/data')).toMatchObject({ mode: 0o644, uid: 0 });
    expect(facts.npm).toEqual([expect.stringMatching(/^@scope\/tool@1\.2\.3 sha512-[A-Za-z0-9+/]{86}==$/)]);
    expect(asked.some((url) => url.endsWith('.tgz'))).toBe(true);
  });

  it('give the same image again', async () => {
    expect((await withPackage('@scope/tool@1.2.3')).digest).toBe((await withPackage('@scope/tool@1.2.3')).digest);
  });

  it('are refused when they hold links or lead out of their folder', async () => {
    expect(await withPackage('linked@1.2.3').catch(codeOf)).toBe('npm_pack_failed');
    expect(await withPackage('outside@1.2.3').catch(codeOf)).toBe('entry_refused');
  });

  it('need an exact version, a plain name and a folder', async () => {
    for (const spec of ['tool', 'tool@latest', 'tool@^1.0.0', '../tool@1.0.0', 'git+https://x/y@1.0.0', '--flag@1.0.0'])
      expect(await withPackage(spec).catch(codeOf), spec).toBe('npm_pack_failed');
    expect(await withPackage('@scope/tool@1.2.3', '/opt/../etc').catch(codeOf)).toBe('npm_pack_failed');
    expect(asked).toEqual([]);
  });

  it('that no registry has say so', async () => {
    expect(await withPackage('absent@1.0.0').catch(codeOf)).toBe('tool_failed');
  });
});

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompanyProxy } from '@firecrew/egress-proxy/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CommandContext } from '../src/commands/context.ts';
import { nodeJoinCommand } from '../src/commands/fleet.ts';
import { openHome } from '../src/home/open-home.ts';

const SERVER = 'https://firecrew.example.test:8443';
let folder: string;
let proxy: CompanyProxy;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-join-'));
  await chmod(folder, 0o711);
  proxy = await CompanyProxy.start();
});
afterEach(async () => {
  await proxy.stop();
  await rm(folder, { recursive: true });
});

/** Joins with a login that the proxy does not take, so that it is asked and nothing more comes of it. */
async function joinWith(more: Record<string, unknown>): Promise<unknown> {
  const home = openHome(join(folder, 'home'));
  await writeFile(join(folder, 'login'), 'robot:an-old-word');
  const egressProxy = { url: proxy.url, credential: { file: join(folder, 'login') }, ...more };
  await writeFile(join(home.paths.root, 'config.json'), JSON.stringify({ egressProxy }), { mode: 0o600 });
  // cast: joining writes nothing before it has succeeded
  const context = { env: {}, cwd: folder, out: {}, homeFlag: home.paths.root, version: '0' } as CommandContext;
  return await nodeJoinCommand(context, SERVER, { token: 't', name: 'n', json: false }).catch((error: unknown) => error);
}

describe('joining a server', () => {
  it('goes through the proxy of the operator where they say that it is behind it, and tells what that proxy refuses', async () => {
    expect(await joinWith({ serverLink: true })).toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/did not take the credential.*chain_auth_refused/),
    });
    expect(proxy.asked).toEqual(['firecrew.example.test:8443']);
  });

  it.each([{}, { serverLink: true, noProxy: ['.example.test'] }])('does not with %j', async (more) => {
    expect(await joinWith(more)).toMatchObject({ code: 'unreachable', message: expect.not.stringContaining('chain_') });
    expect(proxy.asked).toEqual([]);
  });
});

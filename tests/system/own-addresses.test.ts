import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

it('gives each attempt the addresses of server and database, which its guests may not reach', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fcs-own-'));
  const installation = await Installation.start({ bubblewrap: 'off' });
  try {
    const repository = await makeRepository(join(folder, 'repository'), { 'a.txt': 'a\n' });
    const { id } = await installation.startMission({ repository, agent: 'sleep 1000' });
    const { folder: turn } = await installation.attempt(id, 1);
    const text = await until(
      'the launch file of the turn',
      async () => await readFile(join(turn, 'launch.json'), 'utf8').catch(() => undefined),
    );
    const interfaces = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address.replace(/%.*$/, '')));
    expect(JSON.parse(text).serverAddresses).toEqual(expect.arrayContaining(interfaces));
    await installation.client.cancel(id);
    await installation.ended(id);
  } finally {
    await installation.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

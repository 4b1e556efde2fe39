import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';

/** The bound of one host, as the limits of the egress proxy have it. */
const TUNNELS_PER_HOST_MAX = 256;
/** More than one host may have at once, as some versions of package managers ask for. */
const ASKED = TUNNELS_PER_HOST_MAX + 100;
/** Holds every tunnel that it gets until each of its questions has an end, then says how many ended how. */
const FLOOD = `const net = require('node:net');
const proxy = new URL(process.env.HTTPS_PROXY);
const [target, asked] = ['localhost:' + process.argv[2], Number(process.argv[3])];
const counts = {};
let ended = 0;
const end = (how) => {
  counts[how] = (counts[how] ?? 0) + 1;
  if (++ended < asked) return;
  console.log('counts ' + JSON.stringify(counts));
  process.exit(0);
};
for (let at = 0; at < asked; at += 1) {
  let how;
  const settle = (text) => { if (how === undefined) end(how = text); };
  const socket = net.connect(Number(proxy.port), proxy.hostname);
  socket.on('data', (data) => settle(String(data).split(' ')[1]));
  socket.on('error', (error) => settle(error.code));
  socket.on('close', () => settle('closed'));
  socket.write('CONNECT ' + target + ' HTTP/1.1\\r\\nHost: ' + target + '\\r\\n\\r\\n');
}
`;

describe('an agent that opens more tunnels than it may have', () => {
  let folder: string;
  let installation: Installation;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcs-busy-'));
    installation = await Installation.start({ bubblewrap: 'auto' });
  });
  afterAll(async () => {
    await installation?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('is answered each time: those beyond the bound are told that the host is busy, and none is dropped or left waiting', async () => {
    const repository = await makeRepository(join(folder, 'repository'), { 'flood.js': FLOOD });
    const agent = `node flood.js ${installation.witness.port} ${ASKED}; date > made`;
    const { id } = await installation.startMission({ repository, agent });
    await installation.ended(id);
    const counts = /counts (\{.*\})/.exec((await installation.log(id, 1)).toString())?.[1] ?? '{}';
    expect(JSON.parse(counts)).toEqual({ 200: TUNNELS_PER_HOST_MAX, 429: ASKED - TUNNELS_PER_HOST_MAX });
  });
});

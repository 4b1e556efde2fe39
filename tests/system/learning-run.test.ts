import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

/** Asks for a tunnel to each target in turn, says what the answer was, and holds the last that opened until it is told to end. */
const ASK = `const http = require('node:http');
const proxy = new URL(process.env.HTTPS_PROXY);
const ask = (target) => new Promise((done) => {
  const call = http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: target, headers: { host: target } });
  call.on('connect', (answer, socket) => {
    socket.on('error', () => undefined);
    console.log(target.split(':')[0] + ' ' + (answer.statusCode === 200 ? 'open' : answer.headers['x-firecrew-reason']));
    done(socket);
  });
  call.end();
});
(async () => {
  for (const target of process.argv.slice(2)) (await ask(target)).resume();
})();
`;

let folder: string;
let installation: Installation;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fcs-learning-'));
  file = join(folder, 'policy.yaml');
  await writeFile(file, 'version: 1\npreset: named\n');
  installation = await Installation.start({ bubblewrap: 'off', server: { policyFile: file } });
  await writeFile(file, policyText());
  process.kill(installation.server.pid, 'SIGHUP');
  await until('the policy of the test', () => installation.server.logTail(1_000).includes('the policy was replaced'));
});
afterAll(async () => {
  try {
    await installation?.stop();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Named alone what the agents of these tests may try; a private address is opened by no learning, so localhost has its rule. */
function policyText(): string {
  const { port } = installation.witness;
  return `version: 1
preset: named
learn: { setup: [], run: ["localhost:${port}/tcp", private.test] }
addressRules: [{ host: localhost, addresses: [127.0.0.1] }]
`;
}

describe('a learning run', () => {
  it('reaches what is open to those, shows it while it is open, and what is learned of it lets an ordinary mission do the same', async () => {
    const { port } = installation.witness;
    const repository = await makeRepository(join(folder, 'repository'), { 'ask.js': ASK });
    const agent = `node ask.js else.example:443 localhost:${port}`;
    const { id } = await installation.startMission({ repository, agent, extra: { egress: {}, learn: {} } });
    await until('the tunnel in the audit', async () => (await installation.client.explainPolicy(id)).open?.length === 1);
    expect((await installation.log(id, 1)).toString()).toMatch(/else\.example not_listed\nlocalhost open/);
    const explained = await installation.client.explainPolicy(id);
    expect(explained.open).toMatchObject([
      { host: 'localhost', port, address: '127.0.0.1', rule: `localhost:${port}/tcp`, purpose: 'agent' },
    ]);
    await installation.client.cancel(id);
    await installation.ended(id);

    const after = await installation.client.explainPolicy(id);
    expect([after.open, after.learning]).toEqual([[], true]);
    expect(after.reached).toMatchObject([{ host: 'localhost', allowedNow: false, remedy: { by: 'both', entry: `localhost:${port}/tcp` } }]);

    const text = `${policyText()}rules: { learned: { parts: [run], allow: ["${after.reached[0]?.remedy?.entry}"] } }\n`;
    const replaced = () => installation.server.logTail(10_000).split('the policy was replaced').length;
    const before = replaced();
    await writeFile(file, text);
    process.kill(installation.server.pid, 'SIGHUP');
    await until('the learned policy', () => replaced() > before);
    const ordinary = await installation.startMission({ repository, agent, extra: { egress: { allow: ['rule:learned'] } } });
    await until('the answers', async () => (await installation.log(ordinary.id, 1)).toString().includes('localhost'));
    expect((await installation.log(ordinary.id, 1)).toString()).toMatch(/else\.example not_listed\nlocalhost open/);
    await installation.client.cancel(ordinary.id);
    await installation.ended(ordinary.id);
  });
});

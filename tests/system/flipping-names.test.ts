// A whole installation on a host whose network is the test's own: a real name server that answers otherwise each time it is asked, proxy
// variables that lead into a trap, and a count outside of every packet that went where none may go.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { FLIPS, isPublic, UPSTREAMS } from './support/net-world/answers.ts';
import { NetWorld, withoutWorld } from './support/net-world.ts';
import { git, makeRepository } from './support/repository.ts';

const TRAP = 'http://127.0.0.1:3128';
/** What a host behind a company proxy sets, and the switch that makes Node's own clients follow it. */
const PROXY_VARIABLES = {
  ...Object.fromEntries(['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy'].map((name) => [name, TRAP])),
  NODE_USE_ENV_PROXY: '1',
};
const ROUNDS = 12;
/** Asks for a tunnel to each name again and again, several at once, and writes down what came of each. */
const ASK = `const { request } = require('node:http');
const { connect } = require('node:tls');
const { writeFileSync } = require('node:fs');
const proxy = new URL(process.env.HTTPS_PROXY);
const ask = (name) => new Promise((resolve) => {
  const call = request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: name + ':443', headers: { host: name + ':443' } });
  call.on('error', (error) => resolve(error.code));
  call.on('connect', (answer, socket) => {
    socket.on('error', () => resolve('cut'));
    if (answer.statusCode !== 200) { socket.destroy(); return resolve(String(answer.headers['x-firecrew-reason'])); }
    let text = '';
    const inner = connect({ socket, servername: name, rejectUnauthorized: false });
    inner.on('data', (data) => { text += data; });
    inner.on('error', () => resolve('cut'));
    inner.on('close', () => resolve(text));
  });
  call.end();
});
(async () => {
  const told = {};
  for (let round = 0; round < ${ROUNDS}; round += 1)
    await Promise.all(process.argv.slice(2).map(async (name) => (told[name] ??= []).push(await ask(name))));
  writeFileSync('told.json', JSON.stringify(told));
})();
`;

const why = withoutWorld();
const names = Object.keys(FLIPS);

describe.skipIf(why !== '')(`a name that is answered otherwise at each look-up${why}`, () => {
  let world: NetWorld;
  let command: Command;
  beforeAll(async () => {
    world = await NetWorld.make();
    command = await Command.make(PROXY_VARIABLES, world.prefix);
  });
  afterAll(async () => {
    try {
      await command?.stop();
    } finally {
      await world?.stop();
    }
  });

  it('is counted outside when it is reached past the policy', async () => {
    const before = world.packetsElsewhere();
    const [program = '', ...args] = [...world.prefix, 'bash', '-c', 'exec 3<>/dev/tcp/10.1.2.3/443'];
    expect(() => execFileSync(program, args, { timeout: 1_500, stdio: 'ignore' })).toThrow();
    expect(world.packetsElsewhere()).toBeGreaterThan(before);
  });

  it('is reached at its public addresses alone: no packet leaves for another one', { timeout: 240_000 }, async () => {
    const repository = await makeRepository(join(command.folder, 'work', 'repository'), { 'ask.js': ASK });
    const [packets, traps, outside] = [world.packetsElsewhere(), await world.trapCounts(), await world.outsideCounts()];
    const mission = ['run', '--repo', repository, '--task', 'Ask', '--check', 'test -s told.json', '--allow', '.pkg.example.test'];
    const end = await command.json([...mission, '--agent-cmd', `node ask.js ${names.join(' ')}`]);
    expect(end, await command.log('node-agent.log')).toMatchObject({ outcome: { kind: 'completed' } });

    const told = JSON.parse(await git(repository, 'show', `${String(end.branch)}:told.json`)) as Record<string, readonly string[]>;
    const answers = Object.values(told).flat();
    const reached = answers.filter((answer) => answer.startsWith('upstream '));
    expect(answers).toHaveLength(names.length * ROUNDS);
    expect({ packets: world.packetsElsewhere(), traps: await world.trapCounts() }).toEqual({ packets, traps });
    // What the guest calls reached is what the upstream counted, and nothing of it is missing.
    const seen = await world.outsideCounts();
    expect([seen.tunnels - outside.tunnels, seen.unknown - outside.unknown]).toEqual([reached.length, 0]);
    for (const name of names) {
      const flips = FLIPS[name] ?? [];
      // Each tunnel asks once, and dials what it was answered then.
      expect(seen.lookups[name], name).toBe(ROUNDS);
      const expected = Array.from({ length: ROUNDS }, (_, at) => isPublic(flips[at % flips.length] ?? {}));
      expect(
        told[name]?.map((answer) => answer.startsWith('upstream ')),
        `${name}: ${told[name]?.join(' ')}`,
      ).toEqual(expected);
    }

    const audit = (await command.run(['policy', 'audit', String(end.missionId)])).stdout.trim().split('\n');
    const records = audit.map((line) => JSON.parse(line) as { readonly address: string | null; readonly verdict: string });
    const opened = records.filter(({ verdict }) => verdict === 'allowed');
    expect(opened).toHaveLength(reached.length);
    expect(opened.filter(({ address }) => !UPSTREAMS.includes(address ?? ''))).toEqual([]);
  });
});

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation, type MissionOrder } from './support/installation.ts';
import { processesOfAttempt, sendSignal } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';
import { testVmStore } from './support/vm-store.ts';

const TLS = fileURLToPath(new URL('./support/tls/', import.meta.url));
/** Asks a server for its answer over TLS, through the proxy of the guest. */
const REACH = `const port = process.argv[2];
require('node:http').request({ port: 3128, method: 'CONNECT', path: 'localhost:' + port }).on('connect', (answer, socket) => {
  const options = { socket, servername: 'localhost', ca: require('node:fs').readFileSync('ca.pem') };
  const secure = require('node:tls').connect(options, () => secure.write('GET / HTTP/1.0\\r\\n\\r\\n'));
  secure.pipe(process.stdout);
}).end();
`;
const FILES = {
  'add.js': 'module.exports = (a, b) => a - b;\n',
  'ca.pem': readFileSync(join(TLS, 'test-only-cert.pem'), 'utf8'),
  'reach.js': REACH,
  'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n',
};
/** A mission boots four VMs; emulated on a busy machine each may take half a minute. */
const MISSION_MS = 400_000;

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

describe.skipIf(missing !== '')(`missions in VMs of QEMU under emulation${missing}`, { timeout: MISSION_MS + 20_000 }, () => {
  let installation: Installation;
  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: { qemu: { accelerator: 'tcg', store: store.root } },
      server: { driverFloor: 'qemu' },
    });
  }, MISSION_MS);
  afterAll(async () => await installation.stop(), MISSION_MS);

  const start = async (agent: string, check: string | undefined, extra: MissionOrder['extra'] = {}) => {
    const name = randomBytes(6).toString('hex');
    const repository = await makeRepository(join(installation.home, 'scratch', name), FILES);
    const { id } = await installation.startMission({
      repository,
      agent: agent.replaceAll('NAME', name),
      ...(check === undefined ? {} : { check }),
      extra: { driver: 'qemu', ...extra },
    });
    return { id, name, repository };
  };

  const turnEvents = async (id: string) =>
    (await installation.events(id)).flatMap((event) => (event.kind === 'turn.event' ? [event.body] : []));

  it('goes the whole way: set-up, a round that fails, a refused host, an allowed one, the check in a fresh VM, the delivery', async () => {
    const tls = await startTlsServer();
    const agent = `
      test -e /tmp/prepared || exit 9
      say round-$FIRECREW_ROUND-NAME
      node reach.js ${tls.port}
      node -e 'require("node:http").request({ port: 3128, method: "CONNECT", path: "code.example.com:443" }).on("connect", (r) => console.log("refused", r.statusCode)).end()'
      test "$FIRECREW_ROUND" = 1 && { echo half > half.txt; exit 0; }
      grep -q 'exited with status 1' "$FIRECREW_FEEDBACK_FILE" || exit 8
      rm half.txt; echo 'module.exports = (a, b) => a + b;' > add.js`;
    const setup = 'echo yes > /tmp/prepared';
    const { id, name, repository } = await start(agent, 'node test.js', {
      phases: [{ kind: 'coding', task: 'do the work', setup, doneWhenCheck: 'node test.js' }],
      // A name that leads to an address of the host itself, which its operator allows for it alone.
      egress: { ...installation.witness.egress, allow: [...installation.witness.egress.allow, `localhost:${tls.port}`] },
    });
    const { end } = await installation.ended(id, MISSION_MS);
    await tls.stop();
    expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 1 } });
    const saw = ['round-1', 'round-2'].map((what) => installation.witness.saw(`${what}-${name}`).length);
    expect(saw).toEqual([1, 1]);
    const denied = (await turnEvents(id)).flatMap((body) =>
      body.kind === 'egress' && body.line.verdict === 'denied' ? [body.line.host] : [],
    );
    expect(denied).toEqual(['code.example.com', 'code.example.com']);
    const log = (await installation.log(id, 1)).toString();
    expect(log).toContain('refused 403');
    expect(log.match(/an answer over TLS/g)).toHaveLength(2);
    const allowed = (await turnEvents(id)).flatMap((body) =>
      body.kind === 'egress' && body.line.event === 'open' && body.line.port === tls.port ? [body.line.address] : [],
    );
    expect(allowed).toEqual(['127.0.0.1', '127.0.0.1']);
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(await filesAt(repository, delivered.commit)).toMatchObject({ ...FILES, 'add.js': expect.stringContaining('a + b') });
  });

  it('brings back the tree of a guest that powers itself off, from its disk, and tries again', async () => {
    const agent = `
      case "$FIRECREW_ATTEMPT" in
        *.1.1) echo half > half.txt; sync; say going-NAME; as-root 'poweroff -f'; sleep 100 ;;
        *) echo 'module.exports = (a, b) => a + b;' > add.js ;;
      esac`;
    const { id } = await start(agent, 'node test.js');
    const { end, phases } = await installation.ended(id, MISSION_MS);
    expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 2 } });
    expect(phases[0]?.attempts.map((attempt) => attempt.outcome)).toMatchObject([
      { kind: 'lost', reason: 'guest_lost' },
      { kind: 'completed' },
    ]);
    const events = await turnEvents(id);
    const why = events.flatMap((body) => (body.kind === 'attempt.ended' ? [body.detail] : []));
    expect(why[0]).toMatch(/^guest_poweroff: /);
    expect(events.find((body) => body.kind === 'attempt.ended')).toMatchObject({ cause: 'guest_poweroff' });
    const rescues = events.flatMap((body) => (body.kind === 'notice' && body.code === 'vm_rescue' ? [body.message] : []));
    expect(rescues).toEqual([expect.stringMatching(/^the disk of VM (trn_\S+\.1a) is read in VM \1\.r, once the first is gone$/)]);
    const collected = events.flatMap((body) => (body.kind === 'collected' ? [body.changed] : []));
    expect(collected).toEqual([true, true]);
  });

  it.each([
    {
      what: 'memory',
      cause: 'guest_out_of_memory',
      // A small part of the VM's memory: to fill all of it takes an emulated processor a minute.
      use: `as-root 'cd /sys/fs/cgroup; echo +memory > cgroup.subtree_control; mkdir small; echo 128M > small/memory.max; echo $PPID > small/cgroup.procs'
      node -e 'for (const kept = []; ; ) kept.push(Buffer.alloc(1 << 24, 1))'`,
      words: /^guest_out_of_memory: memory ran out while the agent ran: the guest's kernel killed [1-9][0-9]* of its processes/,
    },
    {
      what: 'disk',
      cause: 'guest_disk_full',
      use: `fallocate -l "$(( $(df -k /tmp | awk 'END { print $4 }') - 9000 ))k" /tmp/most; dd if=/dev/zero of=/tmp/rest bs=64k`,
      words: /^guest_disk_full: a disk was full when the agent ended: [0-9]{1,6} bytes were left/,
    },
  ])('says that its $what ran out, tells the agent, and delivers what it did before', async ({ cause, use, words }) => {
    const agent = `test "$FIRECREW_ROUND" = 1 || grep -o 'Of the VM: .*' "$FIRECREW_FEEDBACK_FILE" >> half.txt
      echo half >> half.txt; ${use}; status=$?; echo "ended with $status"; exit $status`;
    const { id, repository } = await start(agent, undefined);
    const { end, phases } = await installation.ended(id, MISSION_MS);
    expect(end.outcome, end.detail).toEqual({ kind: 'gate_capped' });
    expect(phases[0]?.attempts.map(({ detail }) => detail)).toEqual([expect.stringMatching(words)]);
    const events = await turnEvents(id);
    expect(events.flatMap((body) => (body.kind === 'notice' ? [body.code] : []))).toEqual([cause, cause, cause]);
    expect(events.at(-1)).toMatchObject({ kind: 'attempt.ended', cause });
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    const told = new RegExp(`^half\\n(Of the VM: ${words.source.slice(cause.length + 3)}.*\\nhalf\\n){2}$`);
    expect(await filesAt(repository, delivered.commit)).toEqual({ ...FILES, 'half.txt': expect.stringMatching(told) });
  });

  it('leaves no VM behind when its shim is killed, and the next attempt delivers', async () => {
    const agent = `
      case "$FIRECREW_ATTEMPT" in
        *.1.1) echo half > half.txt; say started-NAME; sleep 300 ;;
        *) echo 'module.exports = (a, b) => a + b;' > add.js ;;
      esac`;
    const { id, name } = await start(agent, 'node test.js');
    const first = await installation.attempt(id);
    await until('the agent in its VM', () => installation.witness.saw(`started-${name}`)[0], MISSION_MS);
    const machines = processesOfAttempt(first.marker).filter(({ command }) => command.includes('qemu-system'));
    expect(machines).toHaveLength(1);
    sendSignal(await installation.shimPid(first), 'SIGKILL');
    await until('the VM is gone', () => processesOfAttempt(first.marker).length === 0, 15_000);
    const { end } = await installation.ended(id, MISSION_MS);
    expect(end).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 2 } });
  });
});

/** A server with the certificate of the tests, which proves to be `localhost`. */
async function startTlsServer(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const options = { cert: readFileSync(join(TLS, 'test-only-cert.pem')), key: readFileSync(join(TLS, 'test-only-key.pem')) };
  const server = createServer(options, (_request, response) => response.end('an answer over TLS\n'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    // cast: it listens on a port
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

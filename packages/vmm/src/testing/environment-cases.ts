import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dialLink } from '@firecrew/link';
import { GENERATION } from '@firecrew/protocol';
import { guestHealth } from '../guest-client/simple-requests.ts';
import { type BootedVm, type DriverCase, shell, until, withVm } from './driver-rig.ts';

const CANARY = 'FIRECREW_HOST_CANARY';

function environmentCase(name: string, run: (booted: BootedVm) => Promise<void>, needsIsolation = false): DriverCase {
  return { name, needsIsolation, needsOwnVm: false, run: (rig) => withVm(rig, run) };
}

/** Sends bytes to a loopback port in the guest and prints what comes back until the other side ends. */
const CLIENT = `
  const socket = require('node:net').connect({ port: Number(process.argv[1]), host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', (error) => { console.log(error.code); process.exit(1); });
  socket.pipe(process.stdout);
  socket.end('x'.repeat(300000));
`;

/** What an exec sees, and what it can reach. */
export const environmentCases: readonly DriverCase[] = [
  environmentCase('an exec gets the platform variables and nothing of the host', async ({ vm, spec }) => {
    process.env[CANARY] = 'from-the-host';
    try {
      const { output } = await shell(vm, 'env', { env: { GIVEN: 'by the caller', LANG: 'xx' } });
      const lines = output.split('\n');
      const { home, tmp, agentDir } = vm.guestPaths;
      for (const line of [`HOME=${home}`, `TMPDIR=${tmp}`, `FIRECREW_AGENT_DIR=${agentDir}`, `FIRECREW_ATTEMPT=${spec.attemptMarker}`]) {
        assert.ok(lines.includes(line), line);
      }
      assert.ok(lines.includes('GIVEN=by the caller') && lines.includes('LANG=xx'));
      assert.ok(!output.includes(CANARY));
    } finally {
      delete process.env[CANARY];
    }
  }),
  environmentCase('the proxy variables of an exec name the listener in both spellings, and the caller wins in any', async ({ vm }) => {
    const { proxy } = await guestHealth(await vm.session());
    const { output } = await shell(vm, 'env', { env: { https_proxy: 'http://other:1' } });
    const lines = output.split('\n').filter((line) => /^https?_proxy=/i.test(line));
    assert.deepEqual(lines.sort(), [
      `HTTP_PROXY=http://127.0.0.1:${proxy.port}`,
      `http_proxy=http://127.0.0.1:${proxy.port}`,
      'https_proxy=http://other:1',
    ]);
  }),
  environmentCase('no process of the guest shows its secret in a command line or an environment', async ({ vm }) => {
    const { output } = await shell(vm, 'cat /proc/self/environ /proc/self/cmdline; ls -l /proc/self/fd');
    const seen = (await vm.pids()).map(
      (pid) => readFileSync(`/proc/${pid}/environ`, 'latin1') + readFileSync(`/proc/${pid}/cmdline`, 'latin1'),
    );
    assert.ok(seen.length > 0);
    for (const text of [output, ...seen]) assert.doesNotMatch(text, /[0-9a-f]{64}/);
  }),
  environmentCase('an exec holds no descriptor of the agent', async ({ vm }) => {
    const { output } = await shell(vm, 'ls /proc/self/fd');
    assert.deepEqual(output.trim().split('\n').sort(), ['0', '1', '2', '3']);
  }),
  environmentCase('a connection to either listener becomes one stream of its kind, with both ends apart', async ({ vm, requests }) => {
    const health = await guestHealth(await vm.session());
    for (const port of [health.proxy.port, health.model.port]) {
      const end = await shell(vm, `node -e "$CLIENT" ${port} | wc -c`, { env: { CLIENT } });
      assert.equal(end.output.trim(), '300000');
    }
    assert.deepEqual(requests, [{ t: 'tunnel' }, { t: 'model' }]);
  }),
  environmentCase('a dial with a wrong secret is refused and told, and the session stays', async ({ vm, refusals }) => {
    const session = await vm.session();
    const socket = connect(vm.socketPath);
    await once(socket, 'connect');
    const dialled = dialLink(socket, { secret: Buffer.alloc(32), generation: GENERATION, onStream: () => undefined });
    await assert.rejects(dialled, { code: 'link_refused', id: 'wrong_secret' });
    await until('the refusal was told', () => refusals.length === 1);
    assert.equal(refusals[0]?.reason, 'wrong_secret');
    assert.equal(await vm.session(), session);
  }),
  environmentCase(
    'a guest reaches no port of its host, and sees no process and no home of it',
    async ({ vm }) => {
      const server = createServer((socket) => socket.end('reached'));
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      try {
        const address = server.address();
        const port = typeof address === 'object' && address !== null ? address.port : 0;
        const { output } = await shell(vm, `node -e "$CLIENT" ${port}`, { env: { CLIENT } });
        assert.equal(output, 'ECONNREFUSED\n');
        // A kernel's own threads have no command line.
        const listed = 'for f in /proc/[0-9]*/cmdline; do test "$(head -c 1 $f)" && echo; done 2>/dev/null | wc -l';
        const processes = await shell(vm, listed);
        assert.ok(Number(processes.output) < 10, processes.output);
        const homes = await shell(vm, `ls -A /root /home 2>&1; ls -d "${process.cwd()}" 2>&1`);
        assert.doesNotMatch(homes.output, /^\.(bashrc|profile|ssh|npm|config)$/m);
        assert.match(homes.output, /No such file|cannot access/);
      } finally {
        server.close();
      }
    },
    true,
  ),
];

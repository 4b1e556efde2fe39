import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { probeBubblewrap } from '@firecrew/vmm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { processesOfAttempt, sendSignal } from './support/processes.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { type SimulatedFirecracker, simulatedFirecracker } from './support/simulated-firecracker.ts';
import { until } from './support/until.ts';
import { testVmStore } from './support/vm-store.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n' };
const MISSION_MS = 120_000;
const NODE_AGENT = fileURLToPath(new URL('../../packages/cli/bundle/apps/node-agent.mjs', import.meta.url));

/** What is missed here: the guest of the simulator is a sandbox, and the probe opens the device that a real one would use. */
async function whatIsMissing(): Promise<string | undefined> {
  const bubblewrap = await probeBubblewrap();
  if (!bubblewrap.usable) return bubblewrap.reason;
  try {
    accessSync('/dev/kvm', constants.R_OK | constants.W_OK);
  } catch {
    return 'no /dev/kvm that may be opened';
  }
  const store = await testVmStore();
  return 'missing' in store ? store.missing : undefined;
}

const missing = await whatIsMissing();
const reason = missing === undefined ? '' : ` (not run: ${missing})`;

describe.skipIf(missing !== undefined)(
  `missions with the firecracker driver and a simulated Firecracker${reason}`,
  { timeout: MISSION_MS },
  () => {
    let installation: Installation;
    let simulated: SimulatedFirecracker;
    beforeAll(async () => {
      const store = await testVmStore();
      if ('missing' in store) throw new Error(store.missing);
      simulated = await simulatedFirecracker();
      installation = await Installation.start({
        bubblewrap: 'auto',
        node: { firecracker: { program: simulated.program, jailer: null, store: store.root } },
        server: { driverFloor: 'qemu' },
      });
    }, MISSION_MS);
    afterAll(async () => {
      await installation.stop();
      await simulated.remove();
    }, MISSION_MS);

    const start = async (agent: string) => {
      const name = randomBytes(6).toString('hex');
      const repository = await makeRepository(join(installation.home, 'scratch', name), FILES);
      const order = { repository, agent: agent.replaceAll('NAME', name), check: 'node test.js', extra: { driver: 'firecracker' as const } };
      return { ...(await installation.startMission(order)), name, repository };
    };

    it('go the whole way: a round that fails, the check in a fresh VM, the delivery', async () => {
      const agent = `
      say round-$FIRECREW_ROUND-NAME
      test "$FIRECREW_ROUND" = 1 && { echo half > half.txt; exit 0; }
      grep -q 'exited with status 1' "$FIRECREW_FEEDBACK_FILE" || exit 8
      rm half.txt; echo 'module.exports = (a, b) => a + b;' > add.js`;
      const { id, name, repository } = await start(agent);
      const { end } = await installation.ended(id, MISSION_MS);
      expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 1 } });
      expect(['round-1', 'round-2'].map((what) => installation.witness.saw(`${what}-${name}`).length)).toEqual([1, 1]);
      const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
      expect(await filesAt(repository, delivered.commit)).toMatchObject({ ...FILES, 'add.js': expect.stringContaining('a + b') });
      const isolations = (await installation.events(id)).flatMap((event) =>
        event.kind === 'turn.event' && event.body.kind === 'attempt.started' ? [event.body.isolation] : [],
      );
      expect(isolations).toEqual(['vm']);
    });

    it('are promised by a self-test that boots one VM, and finds nothing left of it', async () => {
      const config = join(installation.home, 'run/node-config.json');
      const { stdout } = await promisify(execFile)(process.execPath, [NODE_AGENT, '--config', config, '--vm-selftest']);
      expect(JSON.parse(stdout)).toEqual([
        { driver: 'firecracker', ok: true, detail: expect.stringMatching(/had no network card, and left nothing$/) },
      ]);
    });

    it('leave no Firecracker behind when their shim is killed, and the next attempt delivers', async () => {
      const agent = `
      case "$FIRECREW_ATTEMPT" in
        *.1.1) say started-NAME; sleep 300 ;;
        *) echo 'module.exports = (a, b) => a + b;' > add.js ;;
      esac`;
      const { id, name } = await start(agent);
      const first = await installation.attempt(id);
      await until('the agent in its VM', () => installation.witness.saw(`started-${name}`)[0], MISSION_MS);
      expect(processesOfAttempt(first.marker).filter(({ command }) => command.includes('--api-sock'))).toHaveLength(1);
      sendSignal(await installation.shimPid(first), 'SIGKILL');
      await until('the VM is gone', () => processesOfAttempt(first.marker).length === 0, 15_000);
      const { end } = await installation.ended(id, MISSION_MS);
      expect(end).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 2 } });
    });
  },
);

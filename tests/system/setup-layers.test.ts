import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from './support/installation.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { testVmStore } from './support/vm-store.ts';

const BROKEN = 'module.exports = (a, b) => a - b;\n';
const FIXED = 'module.exports = (a, b) => a + b;\n';
const FILES = {
  '.gitignore': 'node_modules\n',
  'add.js': BROKEN,
  'lock.txt': 'one\n',
  'notes.txt': 'notes\n',
  'test.js': 'if (require("./add.js")(2, 3) !== 5) process.exit(1);\n',
};
/** A mission boots up to five VMs; emulated on a busy machine each may take half a minute. */
const MISSION_MS = 400_000;
/** Leaves what no second run of it could leave, the id of its boot, and says whether it saw more than the named file. With another lock file it writes to the tree. */
const SET_UP = `mkdir -p node_modules/dep && cp lock.txt node_modules/dep/lock && cp /proc/sys/kernel/random/boot_id node_modules/dep/boot
  test -e add.js || touch node_modules/dep/alone
  test "$(cat lock.txt)" = one || echo of the set-up >> notes.txt
  echo yes > /tmp/prepared`;
/** Shows in the log what there is of the set-up. */
const SEE = 'test -e /tmp/prepared && cmp lock.txt node_modules/dep/lock && echo "boot of the set-up: $(cat node_modules/dep/boot)"';

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

describe.skipIf(missing !== '')(`set-ups kept as layers in VMs of QEMU under emulation${missing}`, { timeout: MISSION_MS + 20_000 }, () => {
  let installation: Installation;
  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: { qemu: { accelerator: 'tcg', store: store.root }, setupLayers: { reserveMib: 0 } },
      server: { driverFloor: 'qemu' },
    });
  }, MISSION_MS);
  afterAll(async () => await installation.stop(), MISSION_MS);

  /** Runs a mission to its end; gives what its timeline says of set-ups, what its VMs showed, and what was delivered. */
  const run = async (agent: string, check: string, files: Readonly<Record<string, string>> = {}) => {
    const name = randomBytes(6).toString('hex');
    const repository = await makeRepository(join(installation.home, 'scratch', name), { ...FILES, ...files });
    const phases = [{ kind: 'coding' as const, task: 'do the work', setup: SET_UP, doneWhenCheck: check }];
    const extra = { driver: 'qemu' as const, phases, setupLayerFiles: ['lock.txt', 'no-such-lock.txt'] };
    const { id } = await installation.startMission({ repository, agent, extra });
    const { end } = await installation.ended(id, MISSION_MS);
    expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed', delivery: { verified: true, attempt: 1 } });
    const bodies = (await installation.events(id)).flatMap((event) => (event.kind === 'turn.event' ? [event.body] : []));
    const told = bodies.flatMap((body) => {
      if (body.kind === 'setup.ended') return [`set-up ran: ${body.exitCode}`];
      return body.kind === 'notice' && body.code.startsWith('setup_layer') ? [`${body.code}: ${body.message}`] : [];
    });
    const log = (await installation.log(id, 1)).toString();
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    const boots = [...log.matchAll(/boot of the set-up: ([0-9a-f-]{36})/g)].map((match) => match[1]);
    return { told, boots, files: await filesAt(repository, delivered.commit) };
  };
  const used = (line: string | undefined): string | undefined => /^setup_layer_used: .* layer ([0-9a-f]{12}):/.exec(line ?? '')?.[1];

  it('runs a set-up once for all VMs of a mission, with the named file alone, and tells which layer was used', async () => {
    const agent = `${SEE} && test -e node_modules/dep/alone || exit 9
      test "$FIRECREW_ROUND" = 1 && { echo half > half.txt; exit 0; }
      rm half.txt; echo '${FIXED.trim()}' > add.js`;
    const { told, boots, files } = await run(agent, `${SEE} && node test.js`);
    expect(told.slice(0, 2)).toEqual(['set-up ran: 0', expect.stringMatching(/^setup_layer_built: the layer [0-9a-f]{12} /)]);
    const key = used(told[2]);
    expect(key).toBeDefined();
    expect(told.slice(2).map(used)).toEqual([key, key, key, key]);
    expect([boots.length, new Set(boots).size]).toEqual([4, 1]);
    expect(files).toEqual({ ...FILES, 'add.js': FIXED });
    expect(await readdir(join(installation.home, 'node/layers'))).toEqual([expect.stringMatching(new RegExp(`^${key}`))]);
  });

  it('uses it for the next mission; another lock file sets up anew, and a set-up that writes to the tree is not kept', async () => {
    const before = await readdir(join(installation.home, 'node/layers'));
    const check = `${SEE} && ! test -e node_modules/dep/alone && grep -q 'of the set-up' notes.txt`;
    const { told, boots, files } = await run(`${SEE} && echo two > lock.txt`, check, { 'other.txt': 'of this tree alone\n' });
    expect(before.map((name) => name.slice(0, 12))).toEqual([used(told[0])]);
    expect(told.slice(1)).toEqual([
      'set-up ran: 0',
      expect.stringMatching(/^setup_layer_none: no layer of the set-up, which runs in each VM: .* wrote to a path of the tree: notes.txt$/),
      'set-up ran: 0',
    ]);
    expect(new Set(boots).size).toBe(2);
    expect(files).toEqual({ ...FILES, 'lock.txt': 'two\n', 'other.txt': 'of this tree alone\n' });
    expect(await readdir(join(installation.home, 'node/layers'))).toEqual(before);
  });
});

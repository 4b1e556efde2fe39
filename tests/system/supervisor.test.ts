import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serverFileSchema } from '@firecrew/protocol';
import { FirecrewClient } from '@firecrew/sdk';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withWitness } from './support/installation.ts';
import { isRunning, linesNaming, processesOf, sendSignal } from './support/processes.ts';
import { fetchDelivery, makeRepository, uploadRepository } from './support/repository.ts';
import { until } from './support/until.ts';
import { WITNESS_PROGRAM, Witness } from './support/witness.ts';

const COMMAND = fileURLToPath(new URL('../../bin/firecrew', import.meta.url));
const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n' };
const ROLES = ['supervisor', 'server', 'nodeAgent', 'database'] as const;

/** Pids of a home's processes, as `firecrew status --json` says them. */
interface Status extends Readonly<Record<(typeof ROLES)[number], number | undefined>> {
  readonly shims: readonly (number | undefined)[];
}

describe('services that `firecrew up` started', () => {
  let folder: string;
  let home: string;
  let witness: Witness;
  let client: FirecrewClient;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcs-'));
    await chmod(folder, 0o711);
    home = join(folder, 'home');
    witness = await Witness.start();
    await firecrew('up', '--json');
    const token = (await readFile(join(home, 'run/token'), 'utf8')).trim();
    client = new FirecrewClient({
      url: async () => serverFileSchema.parse(JSON.parse(await readFile(join(home, 'run/server.json'), 'utf8'))).url,
      token,
    });
  });

  afterAll(async () => {
    await firecrew('down', '--force', '--json').catch(() => undefined);
    await witness.stop();
    const left = processesOf(folder);
    for (const { pid } of left) sendSignal(pid, 'SIGKILL');
    const sockets = linesNaming('/proc/net/unix', folder);
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    expect({ left, sockets }).toEqual({ left: [], sockets: [] });
  });

  async function firecrew(...args: string[]): Promise<string> {
    const env = { PATH: process.env.PATH ?? '', HOME: folder, FIRECREW_HOME: home };
    return await new Promise((resolve, reject) => {
      execFile(COMMAND, args, { env, cwd: folder }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`firecrew ${args.join(' ')}: ${stderr}${stdout}`));
      });
    });
  }

  async function status(): Promise<Status> {
    const said: unknown = JSON.parse(await firecrew('status', '--json'));
    const shims = fieldOf(said, 'shims');
    const [supervisor, server, nodeAgent, database] = ROLES.map((role) => pidOf(fieldOf(said, role)));
    return { supervisor, server, nodeAgent, database, shims: Array.isArray(shims) ? shims.map(pidOf) : [] };
  }

  /** A mission whose agent waits to be let go on. */
  async function startMission(gate: string): Promise<{ id: string; repository: string }> {
    const repository = await makeRepository(join(folder, gate), FILES);
    const program = await client.upload(Buffer.from(WITNESS_PROGRAM));
    const { id } = await client.createMission({
      title: 'Do the work',
      repository: await uploadRepository(client, repository, join(folder, `${gate}.upload`)),
      phases: [{ kind: 'coding', task: 'do the work', doneWhenCheck: 'test -e done.txt' }],
      agent: {
        command: withWitness(witness, `say started-${gate}; wait_for ${gate}; echo x > done.txt`),
        files: [{ name: 'witness.mjs', digest: program.digest, bytes: program.bytes }],
      },
      egress: witness.egress,
      allowUnisolated: true,
    });
    await witness.waitFor(`started-${gate}`);
    return { id, repository };
  }

  async function expectDelivered({ id, repository }: { id: string; repository: string }, gate: string): Promise<void> {
    witness.open(gate);
    const view = await until('the end of the mission', async () => {
      const now = await client.mission(id);
      return now.end === null ? undefined : now;
    });
    expect(view).toMatchObject({ state: 'completed', end: { delivery: { verified: true, attempt: 1 } } });
    await fetchDelivery(client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect(witness.saw(`started-${gate}`)).toHaveLength(1);
  }

  it('outlive their supervisor, and the next one adopts them', async () => {
    const mission = await startMission('adopted');
    const before = await until('a shim in the status', async () => {
      const now = await status();
      return now.shims.length > 0 ? now : undefined;
    });
    sendSignal(before.supervisor ?? 0, 'SIGKILL');
    await until('the end of the supervisor', () => !isRunning(before.supervisor ?? 0));
    await firecrew('up', '--json');
    const after = await status();
    expect(after.supervisor).not.toBe(before.supervisor);
    expect({ ...after, supervisor: undefined }).toEqual({ ...before, supervisor: undefined });
    await expectDelivered(mission, 'adopted');
  });

  it('are started again when all of them are killed, and adopt the attempt that went on', async () => {
    const mission = await startMission('all');
    const before = await until('a shim in the status', async () => {
      const now = await status();
      return now.shims.length > 0 ? now : undefined;
    });
    for (const role of ROLES) sendSignal(before[role] ?? 0, 'SIGKILL');
    await firecrew('up', '--json');
    const after = await status();
    expect(after.shims).toEqual(before.shims);
    for (const role of ROLES) expect(after[role]).not.toBe(before[role]);
    await expectDelivered(mission, 'all');
  });

  it.each(['server', 'nodeAgent', 'database'] as const)('are restarted by their supervisor when the %s is killed', async (role) => {
    const mission = await startMission(role);
    const before = await status();
    sendSignal(before[role] ?? 0, 'SIGKILL');
    await until(`another ${role}`, async () => {
      const now = await status().catch(() => undefined);
      return now?.[role] !== undefined && now[role] !== before[role];
    });
    await expectDelivered(mission, role);
    expect((await status()).supervisor).toBe(before.supervisor);
  });
});

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : undefined;
}

function pidOf(value: unknown): number | undefined {
  const pid = fieldOf(value, 'pid');
  return typeof pid === 'number' ? pid : undefined;
}

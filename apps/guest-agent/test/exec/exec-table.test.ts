import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentConfig } from '../../src/agent-config.ts';
import { ExecTable } from '../../src/exec/exec-table.ts';

let folder = '';
let table: ExecTable;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-execs-'));
  const config: AgentConfig = {
    generation: 1,
    secret: Buffer.alloc(32),
    socketPath: '/none',
    resync: false,
    ports: { proxy: 0, model: 0 },
    modelRoute: false,
    stateFolder: folder,
    folders: [],
    user: null,
    etc: {},
    attemptMarker: `exec-table-${process.pid}`,
    environment: { PATH: '/usr/bin:/bin' },
    platform: {},
    lifeline: false,
    aloneMs: null,
  };
  table = new ExecTable(config, { proxy: undefined, model: undefined });
});
afterEach(async () => {
  await table.close();
  await rm(folder, { recursive: true, force: true });
});

const request = (id: string, argv: string[]) => ({
  t: 'exec' as const,
  id,
  argv,
  cwd: '/',
  env: null,
  timeoutMs: 10_000,
  outputLimitBytes: 1000,
});

describe('the execs of a guest', () => {
  it('say of one that is being started twice that it is taken, and then it can be waited for', async () => {
    const first = table.start(request('one', ['/bin/sh', '-c', 'exit 5']));
    await expect(table.start(request('one', ['/bin/sh', '-c', 'exit 6']))).rejects.toMatchObject({ code: 'exec_id_taken' });
    expect(await table.wait('one')).toMatchObject({ kind: 'exited', exitCode: 5 });
    await first;
  });

  it('tell a repeated start why the first one failed', async () => {
    const first = table.start(request('two', ['/no/such/program']));
    const second = table.start(request('two', ['/no/such/program']));
    await expect(first).rejects.toMatchObject({ code: 'command_not_found' });
    await expect(second).rejects.toMatchObject({ code: 'command_not_found' });
  });

  it('know nothing of one that was never started', () => {
    expect(() => table.wait('three')).toThrow(expect.objectContaining({ code: 'exec_unknown' }));
  });
});

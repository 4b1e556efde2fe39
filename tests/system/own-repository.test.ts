import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Command } from './support/command.ts';
import { git } from './support/repository.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const SETUP = 'npx --yes pnpm@10.34.9 install --frozen-lockfile --ignore-scripts --filter firecrew-workspace --filter @firecrew/mission';
const NODE = `node_modules/node-linux-${process.arch}/bin/node`;
const CHECK = `${NODE} node_modules/vitest/vitest.mjs run packages/mission`;
const AGENT = `#!/bin/sh
set -e
sed -i 's/the first one included/the first one counted/' packages/mission/src/outcome-table.ts
`;

/** Whether the registry of this user's npm answers: without it there is no set-up to run. */
async function registryAnswers(): Promise<boolean> {
  const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', cwd: '/' }).trim();
  return await new Promise((resolve) => {
    const call = request(
      new URL('vitest', registry.endsWith('/') ? registry : `${registry}/`),
      { method: 'HEAD', timeout: 10_000 },
      (reply) => {
        reply.resume();
        resolve((reply.statusCode ?? 500) < 400);
      },
    );
    call.once('error', () => resolve(false));
    call.once('timeout', () => call.destroy());
    call.end();
  });
}

describe('a clone of this repository', () => {
  let command: Command;
  let reachable: boolean;
  beforeAll(async () => {
    reachable = await registryAnswers();
    command = await Command.make();
  });
  afterAll(async () => await command.stop());

  it('is set up with what its lock file names, changed, and checked by the tests of one package', { timeout: 480_000 }, async (context) => {
    if (!reachable) return context.skip('the npm registry is missing');
    const repository = join(command.folder, 'work', 'firecrew');
    execFileSync('git', ['clone', '-q', '--no-hardlinks', CHECKOUT, repository]);
    await writeFile(join(command.folder, 'work', 'agent.sh'), AGENT, { mode: 0o755 });
    const run = ['run', '--repo', 'firecrew', '--task', 'Say it in other words', '--agent-cmd', './agent.sh'];
    const end = await command.json([...run, '--setup', SETUP, '--setup-allow', 'registry:npm', '--check', CHECK]);
    expect(end, await command.log('node-agent.log')).toMatchObject({
      kind: 'run.ended',
      outcome: { kind: 'completed' },
      exitCode: 0,
      denied: [],
    });
    const changed = await git(repository, 'diff', '--name-only', `HEAD..${String(end.branch)}`);
    expect(changed.trim()).toBe('packages/mission/src/outcome-table.ts');
    const log = await command.run(['logs', String(end.missionId)]);
    expect(log.stdout).toMatch(/\d+ passed, 0 failed/);
  });
});

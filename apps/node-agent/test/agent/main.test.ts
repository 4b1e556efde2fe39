import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../../src/agent/main.ts', import.meta.url));

it('says in the last line of its log why it cannot be started, with the pid that its supervisor looks for', () => {
  const { pid, status, stderr } = spawnSync(process.execPath, [MAIN, '--config', '/nonexistent.json'], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
    level: 60,
    role: 'node-agent',
    pid,
    code: 'config_unreadable',
    msg: expect.stringContaining('/nonexistent.json'),
  });
});

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { planAgentInjection } from '../src/index.ts';

const plan = (command: string, over: Partial<Parameters<typeof planAgentInjection>[0]> = {}) =>
  planAgentInjection({ command, callerHas: () => true, treeHas: () => false, ...over });

describe('the first word of the agent command', () => {
  it.each([
    ['../agents/fix.sh --fast "$X"', '../agents/fix.sh', '"$FIRECREW_AGENT_DIR"/fix.sh --fast "$X"'],
    ['./fix.sh', './fix.sh', '"$FIRECREW_AGENT_DIR"/fix.sh'],
    ['  /srv/agents/fix.sh a', '/srv/agents/fix.sh', '"$FIRECREW_AGENT_DIR"/fix.sh a'],
    ["'/srv/agents/my agent.sh' a", '/srv/agents/my agent.sh', '"$FIRECREW_AGENT_DIR"/my_agent.sh a'],
    ['"./my agent" a', './my agent', '"$FIRECREW_AGENT_DIR"/my_agent a'],
    ['./.hidden', './.hidden', '"$FIRECREW_AGENT_DIR"/ahidden'],
  ])('of %s is sent along', (command, callerPath, rewritten) => {
    expect(plan(command)).toMatchObject({ command: rewritten, file: { callerPath }, notice: expect.stringContaining(callerPath) });
  });

  it.each([
    'claude -p x',
    'sh ./fix.sh',
    '/usr/bin/env node',
    '/bin/sh -c x',
    '~/fix.sh',
    '$HOME/fix.sh',
    './fix*.sh',
    '"$X"/fix.sh',
    'A=1 ./fix.sh',
    './dir/',
    '',
    './a;./b',
    "'./a'b",
  ])('of %j is left alone', (command) => {
    expect(plan(command)).toBeUndefined();
  });

  it('is left alone when the tree has it, the caller has not, or its folder is on the PATH', () => {
    expect(plan('./ci/fix.sh', { treeHas: (path) => path === 'ci/fix.sh' })).toBeUndefined();
    expect(plan('./fix.sh', { callerHas: () => false })).toBeUndefined();
    expect(plan('/srv/tools/bin/agent', { pathFolders: ['/srv/tools/bin'] })).toBeUndefined();
  });
});

describe('a rewritten command', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'fc-inject-'));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it('runs the injected file with its arguments, also from a folder with spaces', () => {
    const agentDir = join(home, 'a b');
    mkdirSync(agentDir);
    writeFileSync(join(agentDir, 'fix.sh'), '#!/bin/sh\necho "$1:$2"\n');
    chmodSync(join(agentDir, 'fix.sh'), 0o555);
    const command = plan('./fix.sh \'x y\' "$Z"')?.command ?? '';
    const env = { PATH: '/usr/bin:/bin', FIRECREW_AGENT_DIR: agentDir, Z: 'z' };
    expect(execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8', env })).toBe('x y:z\n');
  });
});

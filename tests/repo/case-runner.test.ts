import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeCase } from '../cases/runner/case-result.ts';
import { caseReport, tallyOf } from '../cases/runner/report.ts';

const RUN = fileURLToPath(new URL('../cases/run.ts', import.meta.url));
const TAR = new URL('../cases/tar/', import.meta.url);
const plain = { id: 'a-1', group: 'a', kind: 'hostname', input: 'evil.test', expect: 'deny', allowList: ['api.example.test'] };

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-cases-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function run(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [RUN, ...args], (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}

async function egressFile(rows: readonly object[]): Promise<string> {
  await writeFile(join(folder, 'cases.json'), JSON.stringify(rows));
  return join(folder, 'cases.json');
}

describe('npm run cases', () => {
  it('runs a file of egress cases that it has never seen, and says how each group ended', async () => {
    const file = await egressFile([
      plain,
      { ...plain, id: 'a-2', expect: 'malformed', acceptable: ['malformed', 'deny'] },
      { ...plain, id: 'b-1', group: 'b', input: 'api.example.test', expect: 'allow' },
      { ...plain, id: 'b-2', group: 'b', target: 'model-route' },
    ]);
    const { code, stdout } = await run('egress', file, '--json', join(folder, 'out.json'));
    expect(stdout).toMatch(/^a +safe 2 of 2, exact 1 of 2$/m);
    expect(stdout).toMatch(/^b +safe 1 of 1, exact 1 of 1, 1 not run$/m);
    expect(stdout).toMatch(/^in all +safe 3 of 3, exact 2 of 3, 1 not run$/m);
    expect(stdout).toContain('b-2: nobody has made a program of these words');
    expect(code).toBe(0);
    const { egress } = JSON.parse(await readFile(join(folder, 'out.json'), 'utf8'));
    expect(egress[3]).toEqual({ id: 'b-2', group: 'b', state: 'not_run', detail: 'nobody has made a program of these words' });
  });

  it('fails when one case is not safe, and names it', async () => {
    const { code, stdout } = await run('egress', await egressFile([plain, { ...plain, id: 'a-9', expect: 'allow' }]));
    expect(stdout).toContain('a-9: ended as deny, wanted allow');
    expect(code).toBe(1);
  });

  it('fails when nothing at all was run', async () => {
    expect((await run('egress', await egressFile([{ ...plain, kind: 'unheard-of' }]))).code).toBe(1);
  });

  it.each([
    ['a kind that there is none of', ['pictures', 'x']],
    ['a file that is not there', ['egress', '/nonexistent/cases.json']],
  ])('ends with 2 for %s', async (_what, args) => {
    expect((await run(...args)).code).toBe(2);
  });

  it('refuses a file whose rows are not cases', async () => {
    const { code, stderr } = await run('egress', await egressFile([{ id: 'x' }]));
    expect(stderr).toContain('case 0 of');
    expect(code).toBe(2);
  });

  it('unpacks a folder of archives', async () => {
    const index = JSON.parse(await readFile(new URL('index.json', TAR), 'utf8')).slice(0, 2);
    await mkdir(join(folder, 'tar'));
    for (const { file } of index) await copyFile(new URL(file, TAR), join(folder, 'tar', file));
    await writeFile(join(folder, 'tar/index.json'), JSON.stringify([...index, { ...index[0], aNewField: 1 }]));
    const { code, stdout } = await run('tar', join(folder, 'tar'));
    expect(stdout).toMatch(/^in all +safe 2 of 2, exact 2 of 2, 1 not run$/m);
    expect(code).toBe(0);
  });
});

describe('judging a case', () => {
  const wanted = { id: 'x', group: 'g', expect: 'deny', acceptable: ['malformed'] };

  it('takes what throws for unsafe', async () => {
    const result = await judgeCase(wanted, () => Promise.reject(new Error('the flood was read\nmore')));
    expect(result).toEqual({ id: 'x', group: 'g', state: 'unsafe', detail: 'the flood was read' });
  });

  it('counts what was not run in no other count', async () => {
    const results = [
      await judgeCase(wanted, async () => ({ run: true, ended: 'deny' })),
      await judgeCase(wanted, async () => ({ run: true, ended: 'malformed' })),
      await judgeCase(wanted, async () => ({ run: true, ended: 'allow' })),
      await judgeCase(wanted, async () => ({ run: false, why: 'no program' })),
    ];
    expect(tallyOf(results)).toEqual({ run: 3, safe: 2, exact: 1, notRun: 1 });
    expect(caseReport(results)).toContain('g       safe 2 of 3, exact 1 of 3, 1 not run');
  });
});

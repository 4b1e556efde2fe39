// Every published egress case on the wire, in a network of its own that leads nowhere: what would leave fails, and no other answer than the test's comes.
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EgressCase } from '../../packages/egress-proxy/test/cases/case-format.ts';
import { runEgressCase } from '../../packages/egress-proxy/test/cases/run-egress-case.ts';
import type { CaseResult } from '../cases/runner/case-result.ts';

const RUN = fileURLToPath(new URL('../cases/run.ts', import.meta.url));
const FILE = fileURLToPath(new URL('../cases/egress/cases.json', import.meta.url));
const all: readonly EgressCase[] = JSON.parse(readFileSync(FILE, 'utf8'));
/** Cases that ran when this was written, everywhere: the rest needs clients that a machine may lack. */
const RUN_AT_LEAST = 268;
const LOOPBACK_ALONE = 'ip link set lo up && exec "$@"';

/** What a command begins with in a network of its own; undefined where there can be none. */
function ownNetwork(): readonly string[] | undefined {
  const root = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  const prefix = ['unshare', ...root, '--net', 'sh', '-ec', LOOPBACK_ALONE, 'sh'];
  try {
    execFileSync('unshare', [...prefix.slice(1), 'true'], { stdio: 'ignore' });
    return prefix;
  } catch {
    return undefined;
  }
}

const network = ownNetwork();
let folder = '';
let printed = '';
let results: ReadonlyMap<string, CaseResult>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-cases-'));
  const json = join(folder, 'results.json');
  const [program = '', ...args] = [...(network ?? []), process.execPath, RUN, 'egress', FILE, '--json', json];
  printed = await new Promise((resolve) => {
    execFile(program, args, { timeout: 170_000 }, (_error, stdout, stderr) => resolve(`${stdout}${stderr}`));
  });
  const written = JSON.parse(await readFile(json, 'utf8').catch(() => '{ "egress": [] }')) as { readonly egress: readonly CaseResult[] };
  results = new Map(written.egress.map((result) => [result.id, result]));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  console.log(`egress cases: ${/^in all .*/m.exec(printed)?.[0] ?? 'none ran'}`);
});

describe('the published egress cases on the wire', () => {
  it.each(all)('$group $id: $input ends as $expect, or is not run', ({ id }) => {
    const result = results.get(id);
    expect(result?.state, result?.detail ?? printed).toMatch(/^(?:exact|safe|not_run)$/);
  });

  it('ran at least the cases that were run when this was written', () => {
    expect([...results.values()].filter(({ state }) => state !== 'not_run').length).toBeGreaterThanOrEqual(RUN_AT_LEAST);
  });

  it(`ran where nothing leads out${network === undefined ? ' (not run: no network of its own can be made here)' : ''}`, (context) => {
    if (network === undefined) return context.skip('no network of its own can be made here');
    const [program = '', ...args] = [...network, 'cat', '/proc/net/route', '/proc/net/dev'];
    const text = execFileSync(program, args, { encoding: 'utf8' });
    // The heads of two tables, and one card.
    expect(text.trim().split('\n')).toHaveLength(4);
    expect(text).toContain('lo:');
  });

  it.each([
    { field: { kind: 'a-new-kind' } },
    { field: { target: 'model-route' } },
    { field: { requires: ['a-new-feature'] } },
    { field: { checks: ['a-new-check:1'] } },
    { field: { aNewField: 1 } },
  ])('does not run a case that asks for $field', async ({ field }) => {
    const plain: EgressCase = { id: 'x', group: 'x', kind: 'hostname', input: 'evil.test', expect: 'deny', allowList: [] };
    expect(await runEgressCase(plain)).toEqual({ run: true, ended: 'deny' });
    expect(await runEgressCase({ ...plain, ...field })).toMatchObject({ run: false });
  });
});

// Measures against named peers and prints ratios: `npm run bench`, `npm run bench -- --only exec --json FILE`.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type BenchRow, benchTable, notMeasured, type Suite } from './support/row.ts';

/** Each suite, loaded only where it runs: one process for one suite, so that no heap and no socket of one weighs on the next. */
const SUITES = new Map<string, () => Promise<Suite>>([
  ['workspace', async () => (await import('./suites/workspace.ts')).workspaceSuite],
  ['exec', async () => (await import('./suites/exec.ts')).execSuite],
  ['follow', async () => (await import('./suites/follow.ts')).followSuite],
  ['egress', async () => (await import('./suites/egress.ts')).egressSuite],
  ['model-route', async () => (await import('./suites/model-route.ts')).modelRouteSuite],
  ['placement', async () => (await import('./suites/placement.ts')).placementSuite],
  ['decide', async () => (await import('./suites/decide.ts')).decideSuite],
  ['vm', async () => (await import('./suites/vm.ts')).vmSuite],
  ['link', async () => (await import('./suites/link.ts')).linkSuite],
]);

/** What the host's side of a sandbox is started with by the node agent. */
const SHIM_OPTIONS = ['--max-semi-space-size=1', '--single-threaded-gc'];

async function runSuite(name: string): Promise<BenchRow[]> {
  const child = fork(fileURLToPath(import.meta.url), ['--suite', name], { execArgv: name === 'workspace' ? SHIM_OPTIONS : [] });
  let rows: BenchRow[] = [];
  child.on('message', (message) => {
    rows = message as BenchRow[];
  });
  const [code] = await once(child, 'exit');
  return code === 0 ? rows : [...rows, notMeasured(name, '', `the suite ended with ${code}`)];
}

async function runHere(name: string): Promise<number> {
  const load = SUITES.get(name);
  const rows = await (await load?.())?.();
  await new Promise((resolve) => process.send?.(rows, resolve));
  process.disconnect();
  return 0;
}

async function main(): Promise<number> {
  const options = { only: { type: 'string', multiple: true }, json: { type: 'string' }, suite: { type: 'string' } } as const;
  const { only, json, suite } = parseArgs({ options }).values;
  if (suite !== undefined) return await runHere(suite);
  const names = only ?? [...SUITES.keys()];
  const unknown = names.filter((name) => !SUITES.has(name));
  if (unknown.length > 0) {
    console.error(`there is no bench ${unknown.join(', ')}; there are ${[...SUITES.keys()].join(', ')}`);
    return 2;
  }
  console.log(`${cpus().length} processors, ${Math.round(totalmem() / 1024 ** 3)} GiB, Node ${process.version}\n`);
  const all: BenchRow[] = [];
  for (const name of names) {
    console.error(`measuring ${name} ...`);
    all.push(...(await runSuite(name)));
  }
  console.log(benchTable(all));
  if (json !== undefined) await writeFile(json, `${JSON.stringify(all, undefined, 1)}\n`);
  return all.some(({ name, value }) => value === null && SUITES.has(name)) ? 1 : 0;
}

process.exitCode = await main();

// Long runs of the properties, and mutants of the decisions: `npm run soak`, `npm run soak -- tar --factor 200 --seed 7`,
// `npm run soak -- mutate egress-policy`.
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mutatePackage } from './mutate-package.ts';
import { SOAKS } from './soaks.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const CONFIG = fileURLToPath(new URL('./vitest.config.ts', import.meta.url));
const FACTOR = 50;
const MUTANTS = 60;

const USAGE = `npm run soak [-- NAME ...]             properties with ${FACTOR} times the runs; ${[...SOAKS.keys()].join(', ')}
   --factor N                          times as many runs
   --seed N                            the seed of an earlier soak
npm run soak -- mutate PACKAGE         mutants of a package's sources that its tests do not see
   --limit N                           how many of them, ${MUTANTS} by default; 0 for all
   --seed N                            which of them`;

async function soak(names: readonly string[], factor: number, seed: number): Promise<number> {
  const chosen = names.length === 0 ? [...SOAKS.keys()] : names;
  const files = chosen.flatMap((name) => SOAKS.get(name) ?? []);
  console.log(`soak of ${chosen.join(', ')}: ${factor} times the runs, seed ${seed}`);
  console.log(`again: npm run soak -- ${names.join(' ')}${names.length === 0 ? '' : ' '}--factor ${factor} --seed ${seed}\n`);
  const env = { ...process.env, FIRECREW_SOAK_FACTOR: String(factor), FIRECREW_SOAK_SEED: String(seed) };
  const child = spawn(process.execPath, [VITEST, 'run', '--config', CONFIG, ...files], { cwd: ROOT, env, stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  console.log(`\nsoak: seed ${seed}, ${code === 0 ? 'every property held' : 'a property failed; see its counterexample above'}`);
  return code === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  const options = {
    factor: { type: 'string', default: String(FACTOR) },
    limit: { type: 'string', default: String(MUTANTS) },
    seed: { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  const [first, ...rest] = positionals;
  const seed = values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed);
  const numbers = [seed, Number(values.factor), Number(values.limit)];
  const isMutation = first === 'mutate';
  const known = isMutation ? rest.length === 1 : positionals.every((name) => SOAKS.has(name));
  if (values.help === true || !known || !numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) {
    console.error(USAGE);
    return 2;
  }
  if (isMutation) return await mutatePackage({ root: ROOT, name: rest[0] ?? '', limit: Number(values.limit), seed });
  return await soak(positionals, Number(values.factor), seed);
}

process.exitCode = await main();

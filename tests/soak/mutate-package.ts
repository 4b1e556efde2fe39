import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { findMutants, type Mutant } from './find-mutants.ts';

/** What is mutated, and how much of it. */
export interface MutationOrder {
  /** The repository. */
  readonly root: string;
  /** A folder of `packages`. */
  readonly name: string;
  /** How many mutants; 0 for all. */
  readonly limit: number;
  readonly seed: number;
}

interface PlacedMutant extends Mutant {
  readonly file: string;
}

/** A mutant whose tests do not end by then loops, and is seen. */
const MUTANT_MS = 90_000;
/** What a package can hold no mutant in that means anything. */
const LEFT_OUT = ['index.ts', 'testing'];

/** A copy of one package in which its tests run as they do in the repository. */
async function copyPackage({ root, name }: MutationOrder): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'firecrew-mutants-'));
  const target = join(copy, 'packages', name);
  await mkdir(join(copy, 'tests'), { recursive: true });
  await cp(join(root, 'packages', name), target, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !/\/(?:node_modules|dist|\.turbo)(?:\/|$)/.test(relative(root, path).padStart(1, '/')),
  });
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'));
  await symlink(join(root, 'packages', name, 'node_modules'), join(target, 'node_modules')).catch(() => undefined);
  await symlink(join(root, 'tests/cases'), join(copy, 'tests/cases'));
  // The root's own names every package, of which there is one here.
  for (const file of await readdir(root)) if (/^tsconfig\..+\.json$/.test(file)) await cp(join(root, file), join(copy, file));
  await symlink(join(root, 'tools'), join(copy, 'tools'));
  await writeFile(join(copy, 'vitest.config.mjs'), "export default { test: { include: ['packages/*/test/**/*.test.ts'], bail: 1 } };\n");
  return copy;
}

/** Whether the tests of the copy pass. */
async function testsPass(copy: string): Promise<boolean> {
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', '--silent'], { cwd: copy, stdio: 'ignore', detached: true });
  const timer = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), MUTANT_MS);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  return code === 0;
}

async function listMutants(sources: string): Promise<PlacedMutant[]> {
  const files = (await readdir(sources, { recursive: true })).filter(
    (file) => file.endsWith('.ts') && !LEFT_OUT.some((part) => file.split('/').includes(part)),
  );
  const all = await Promise.all(
    files
      .toSorted()
      .map(async (file) => findMutants(file, await readFile(join(sources, file), 'utf8')).map((mutant) => ({ ...mutant, file }))),
  );
  return all.flat();
}

/** A share of a list, the same for the same seed, in the order of the list. */
export function choose<T>(all: readonly T[], limit: number, seed: number): T[] {
  if (limit === 0 || limit >= all.length) return [...all];
  // One of each stretch of equal length, so that every file has its part.
  const random = lehmer(seed);
  const stretch = all.length / limit;
  return Array.from({ length: limit }, (_, index) => all[Math.floor((index + random()) * stretch)]).filter((item) => item !== undefined);
}

function lehmer(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const lineOf = (source: string, at: number): number => source.slice(0, at).split('\n').length;

/** Changes one thing at a time in a copy of a package and tells which changes its tests do not see; gives the exit code. */
export async function mutatePackage(order: MutationOrder): Promise<number> {
  const copy = await copyPackage(order);
  try {
    const sources = join(copy, 'packages', order.name, 'src');
    const all = await listMutants(sources);
    const chosen = choose(all, order.limit, order.seed);
    console.log(`${order.name}: ${chosen.length} of ${all.length} mutants, seed ${order.seed}`);
    if (!(await testsPass(copy))) {
      console.error('the tests do not pass without a mutant; nothing was learned');
      return 2;
    }
    const survivors: string[] = [];
    for (const [index, mutant] of chosen.entries()) {
      const file = join(sources, mutant.file);
      const source = await readFile(file, 'utf8');
      await writeFile(file, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end));
      const survived = await testsPass(copy);
      await writeFile(file, source);
      const text = `src/${mutant.file}:${lineOf(source, mutant.start)}  ${mutant.was} -> ${mutant.text || '(nothing)'}`;
      if (survived) survivors.push(text);
      console.log(`${String(index + 1).padStart(4)}/${chosen.length} ${survived ? 'SURVIVED' : 'seen    '} ${text}`);
    }
    console.log(
      `\n${chosen.length - survivors.length} of ${chosen.length} mutants were seen${survivors.length === 0 ? '' : '; not seen:'}`,
    );
    for (const survivor of survivors) console.log(`  ${survivor}`);
    return 0;
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

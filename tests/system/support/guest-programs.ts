import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type TestVmStore, testVmStore } from './vm-store.ts';

const CACHE = fileURLToPath(new URL('../../../node_modules/.cache', import.meta.url));

/** Bundles a program of `guest/` into one file that runs with the Node of a guest. */
export async function bundleGuestProgram(name: 'limit-groups' | 'hostile-guest-agent', folder: string): Promise<string> {
  const outfile = join(folder, `${name}.cjs`);
  await build({
    entryPoints: [fileURLToPath(new URL(`guest/${name}.ts`, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node22.13',
    format: 'cjs',
    minifyWhitespace: true,
  });
  return outfile;
}

/** The store of the tests with a guest agent that attacks its host when it is told to. */
export async function hostileVmStore(): Promise<TestVmStore> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'hostile-agent-'));
  try {
    return await testVmStore(await bundleGuestProgram('hostile-guest-agent', folder));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

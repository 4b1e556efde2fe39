import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Bundles a program of the tests into one file that runs with the Node of a guest. */
export async function bundleGuestProgram(name: 'limit-groups' | 'hostile-guest-agent', target: string): Promise<string> {
  const outfile = join(target, `${name}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL(`guest/${name}.ts`, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node22.13',
    format: 'esm',
    minifyWhitespace: true,
    banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
  });
  return outfile;
}

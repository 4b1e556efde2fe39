// One way to make one file of an app: what runs from it needs Node and nothing else.
import { build } from 'esbuild';

/** Bundles `entry` into `outfile`. `define` replaces expressions, as in esbuild. */
export async function bundle(entry, outfile, define = {}) {
  await build({
    entryPoints: [entry],
    outfile,
    define,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    legalComments: 'none',
    // The native client of the database driver is optional and not used.
    external: ['pg-native'],
    // Dependencies written for CommonJS ask for Node's modules by require.
    banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
  });
}

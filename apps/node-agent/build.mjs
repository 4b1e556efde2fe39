// Bundles the shim into one file, so that an upgrade of this checkout takes nothing away under one that runs.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  entryPoints: [here('src/shim/shim-main.ts')],
  outfile: process.argv[2] ?? here('bundle/shim.mjs'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  legalComments: 'none',
  // Dependencies written for CommonJS ask for Node's modules by require.
  banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
});

// Bundles the server into one file beside its migrations, so that it runs from a folder that its own user can read.
import { cp, readFile, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { version } = JSON.parse(await readFile(here('package.json'), 'utf8'));
await rm(here('bundle'), { recursive: true, force: true });
await build({
  entryPoints: [here('src/main.ts')],
  outfile: here('bundle/server.mjs'),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  legalComments: 'none',
  define: { 'process.env.FIRECREW_BUILD_VERSION': JSON.stringify(version) },
  // The native client is optional and not used.
  external: ['pg-native'],
  // Dependencies written for CommonJS ask for Node's modules by require.
  banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
});
await cp(here('../../packages/store/migrations'), here('bundle/migrations'), { recursive: true });

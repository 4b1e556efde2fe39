// Bundles a program of an app into one file that needs Node and nothing else: node tools/bundle-app.mjs NAME [FOLDER]
import { cp, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What there is to bundle. `beside` is copied next to the file. */
const PROGRAMS = {
  server: { entry: 'apps/server/src/main.ts', file: 'server.mjs', beside: { migrations: 'packages/store/migrations' } },
  'node-agent': { entry: 'apps/node-agent/src/shim/shim-main.ts', file: 'shim.mjs', beside: {} },
  'guest-agent': { entry: 'apps/guest-agent/src/main.ts', file: 'guest-agent.mjs', beside: {} },
};

const [name, folder] = process.argv.slice(2);
const program = PROGRAMS[name];
if (program === undefined) {
  process.stderr.write(`usage: bundle-app.mjs ${Object.keys(PROGRAMS).join('|')} [FOLDER]\n`);
  process.exit(2);
}
const { version } = JSON.parse(await readFile(join(root, 'apps', name, 'package.json'), 'utf8'));
const target = folder ?? join(root, 'apps', name, 'bundle');
if (folder === undefined) await rm(target, { recursive: true, force: true });
await build({
  entryPoints: [join(root, program.entry)],
  outfile: join(target, program.file),
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  legalComments: 'none',
  define: { 'process.env.FIRECREW_BUILD_VERSION': JSON.stringify(version) },
  // The native client of the database driver is optional and not used.
  external: ['pg-native'],
  // Dependencies written for CommonJS ask for Node's modules by require.
  banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
});
for (const [to, from] of Object.entries(program.beside)) await cp(join(root, from), join(target, to), { recursive: true });

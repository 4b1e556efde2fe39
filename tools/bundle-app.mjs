// Bundles programs into files that need Node and nothing else: node tools/bundle-app.mjs NAME [FOLDER]

import { existsSync } from 'node:fs';
import { chmod, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { licencesOf } from './bundle-licences.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What there is to bundle: programs by file, and what is copied beside them. */
const BUNDLES = {
  server: {
    package: 'apps/server',
    programs: { 'server.mjs': 'apps/server/src/main.ts' },
    beside: { migrations: 'packages/store/migrations' },
  },
  'node-agent': {
    package: 'apps/node-agent',
    programs: {
      'node-agent.mjs': 'apps/node-agent/src/agent/main.ts',
      'shim.mjs': 'apps/node-agent/src/shim/shim-main.ts',
      'credential-broker.mjs': 'apps/node-agent/src/broker/broker-main.ts',
    },
    beside: {},
  },
  'guest-agent': {
    package: 'apps/guest-agent',
    programs: { 'guest-agent.cjs': 'apps/guest-agent/src/main.ts' },
    beside: {},
    format: 'cjs',
  },
  cli: {
    package: 'packages/cli',
    programs: { 'command.mjs': 'packages/cli/src/main.ts' },
    // A call reads what it needs and not all commands; parts lie beside the entry, so that paths from `import.meta.url` hold in each.
    split: true,
    beside: {
      'firecrew.mjs': 'packages/cli/launcher/firecrew.mjs',
      'apps/server.mjs': 'apps/server/bundle/server.mjs',
      'apps/migrations': 'apps/server/bundle/migrations',
      'apps/node-agent.mjs': 'apps/node-agent/bundle/node-agent.mjs',
      'apps/shim.mjs': 'apps/node-agent/bundle/shim.mjs',
      'apps/credential-broker.mjs': 'apps/node-agent/bundle/credential-broker.mjs',
      'apps/guest-agent.cjs': 'apps/guest-agent/bundle/guest-agent.cjs',
      'apps/LICENSES-server.txt': 'apps/server/bundle/LICENSES.txt',
      'apps/LICENSES-node-agent.txt': 'apps/node-agent/bundle/LICENSES.txt',
      'apps/LICENSES-guest-agent.txt': 'apps/guest-agent/bundle/LICENSES.txt',
    },
    // Pid 1 of a microVM takes a C compiler: without one the package makes no kernels but with --init.
    optional: { 'apps/guest-init': 'apps/guest-agent/init/build/init' },
  },
};

/** The schema library brings its messages in fifty languages, which are most of a small program; ours are in English. */
const englishAlone = {
  name: 'english-alone',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
      loader: 'js',
    }));
  },
};

/** Of a CommonJS module that is loaded late, a part has the default export alone: names that a caller takes from it would be undefined. */
function demandNamedImports(files) {
  for (const [importer, { imports }] of Object.entries(files))
    for (const { kind, path } of imports)
      if (kind === 'dynamic-import' && files[path]?.format === 'cjs')
        throw new Error(`${importer} imports ${path} late, which is CommonJS: import it at the top of a module of ours, and that one late`);
}

/** Dependencies written for CommonJS ask for Node's modules by require. */
const REQUIRE = "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);";

const [name, folder] = process.argv.slice(2);
const bundle = BUNDLES[name];
if (bundle === undefined) {
  process.stderr.write(`usage: bundle-app.mjs ${Object.keys(BUNDLES).join('|')} [FOLDER]\n`);
  process.exit(2);
}
const { version } = JSON.parse(await readFile(join(root, bundle.package, 'package.json'), 'utf8'));
const target = folder ?? join(root, bundle.package, 'bundle');
if (folder === undefined) await rm(target, { recursive: true, force: true });
const inputs = new Set();
// CommonJS starts in less time than ES modules do, which counts where the machine is emulated.
const { format = 'esm' } = bundle;
for (const [file, entry] of Object.entries(bundle.programs)) {
  const { metafile } = await build({
    entryPoints: [{ in: join(root, entry), out: basename(file, extname(file)) }],
    outdir: target,
    outExtension: { '.js': extname(file) },
    splitting: bundle.split ?? false,
    chunkNames: 'part-[hash]',
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    // The oldest that `engines` allows.
    target: 'node22.13',
    format,
    legalComments: 'none',
    metafile: true,
    // Half the bytes to read at each start; names stay, so that stack traces can be read.
    minifyWhitespace: true,
    minifySyntax: true,
    plugins: [englishAlone],
    define: { 'process.env.FIRECREW_BUILD_VERSION': JSON.stringify(version) },
    // The native client of the database driver is optional and not used.
    external: ['pg-native'],
    ...(format === 'esm' ? { banner: { js: REQUIRE } } : {}),
  });
  if (bundle.split) demandNamedImports(metafile.inputs);
  for (const input of Object.keys(metafile.inputs)) inputs.add(join(root, input));
}
await writeFile(join(target, 'LICENSES.txt'), await licencesOf(inputs));
const optional = Object.entries(bundle.optional ?? {}).filter(([, from]) => existsSync(join(root, from)));
for (const [to, from] of [...Object.entries(bundle.beside), ...optional]) await cp(join(root, from), join(target, to), { recursive: true });
if (bundle.beside['firecrew.mjs'] !== undefined) await chmod(join(target, 'firecrew.mjs'), 0o755);

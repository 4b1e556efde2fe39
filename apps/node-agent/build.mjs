// Bundles the shim into one file, so that an upgrade of this checkout takes nothing away under one that runs.
import { fileURLToPath } from 'node:url';
import { bundle } from '../../tools/bundle.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

await bundle(here('src/shim/shim-main.ts'), process.argv[2] ?? here('bundle/shim.mjs'));

// Bundles the server into one file beside its migrations, so that it runs from a folder that its own user can read.
import { cp, readFile, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { bundle } from '../../tools/bundle.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { version } = JSON.parse(await readFile(here('package.json'), 'utf8'));
await rm(here('bundle'), { recursive: true, force: true });
await bundle(here('src/main.ts'), here('bundle/server.mjs'), { 'process.env.FIRECREW_BUILD_VERSION': JSON.stringify(version) });
await cp(here('../../packages/store/migrations'), here('bundle/migrations'), { recursive: true });

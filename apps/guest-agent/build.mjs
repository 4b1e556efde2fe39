// Bundles the guest agent into one file that needs Node and nothing else.
import { fileURLToPath } from 'node:url';
import { bundle } from '../../tools/bundle.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

await bundle(here('src/main.ts'), process.argv[2] ?? here('bundle/guest-agent.mjs'));

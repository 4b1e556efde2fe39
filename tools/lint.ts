// Every static check of the repository. `npm run lint -- NAME...` runs the named ones only.
import { join } from 'node:path';
import { checkLayers } from './lint/check-layers.ts';
import { checkPackages } from './lint/check-packages.ts';
import { checkPurity } from './lint/check-purity.ts';
import { checkSchema } from './lint/check-schema.ts';
import { checkSizes } from './lint/check-sizes.ts';
import { checkWords } from './lint/check-words.ts';
import { checkErrorDocument } from './lint/error-document.ts';
import { runTool } from './lint/run-tool.ts';

const root = join(import.meta.dirname, '..');
const bin = join(root, 'node_modules', '.bin');

type Check = () => readonly string[] | Promise<readonly string[]>;

const tool =
  (name: string, ...args: readonly string[]): Check =>
  async () => {
    const { status, output } = await runTool(join(bin, name), args, root);
    return status === 0 ? [] : [output];
  };

const CHECKS: Readonly<Record<string, Check>> = {
  format: tool('biome', 'check', '.', '--error-on-warnings', '--max-diagnostics=50'),
  types: tool('tsc', '-b'),
  'test-types': tool('tsc', '-p', 'tsconfig.tests.json'),
  promises: tool('oxlint', '--type-aware', '--deny-warnings'),
  boundaries: tool('turbo', 'boundaries'),
  layers: () => checkLayers(root),
  purity: () => checkPurity(root),
  sizes: () => checkSizes(root),
  words: () => checkWords(root),
  errors: () => checkErrorDocument(root),
  schema: () => checkSchema(root),
  unused: tool('knip'),
  packages: () => checkPackages(root, bin),
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(CHECKS, name));
if (unknown.length > 0) {
  console.error(`no check called ${unknown.join(', ')}; there are ${Object.keys(CHECKS).join(', ')}`);
  process.exit(2);
}

let failed = 0;
for (const [name, check] of Object.entries(CHECKS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const started = performance.now();
  const findings = await check();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${findings.length === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  for (const finding of findings) console.log(finding.replace(/^/gm, '  '));
  if (findings.length > 0) failed += 1;
}
console.log(failed === 0 ? 'lint: all checks hold' : `lint: ${failed} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;

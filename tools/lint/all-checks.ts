// Every static check of the repository, by name, in the order in which they run: the cheap and telling ones first.
import { join } from 'node:path';
import { checkApi } from './check-api.ts';
import { checkLayers } from './check-layers.ts';
import { checkPackages } from './check-packages.ts';
import { checkPurity } from './check-purity.ts';
import { checkSchema } from './check-schema.ts';
import { checkSizes } from './check-sizes.ts';
import { checkWords } from './check-words.ts';
import { checkErrorDocument } from './error-document.ts';
import { runTool } from './run-tool.ts';

/** One check: what it found, nothing when all is well. */
export type Check = () => readonly string[] | Promise<readonly string[]>;

/** The checks of the repository at `root`, with the tools in `bin`. */
export function allChecks(root: string, bin: string): Readonly<Record<string, Check>> {
  const tool =
    (name: string, ...args: readonly string[]): Check =>
    async () => {
      const { status, output } = await runTool(join(bin, name), args, root);
      return status === 0 ? [] : [output];
    };
  return {
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
    api: () => checkApi(root),
    schema: () => checkSchema(root),
    unused: tool('knip', '--no-config-hints'),
    packages: () => checkPackages(root, bin),
  };
}

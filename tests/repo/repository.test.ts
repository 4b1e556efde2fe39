// What this repository promises about itself: layers, purity, error codes, exports and examples.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkApi } from '../../tools/lint/check-api.ts';
import { checkLayers } from '../../tools/lint/check-layers.ts';
import { checkPurity } from '../../tools/lint/check-purity.ts';
import { checkWords } from '../../tools/lint/check-words.ts';
import { checkErrorDocument } from '../../tools/lint/error-document.ts';
import { runTool } from '../../tools/lint/run-tool.ts';
import { readManifest, workspacePackages } from '../../tools/lint/workspace-packages.ts';
import { ROOT } from './small-workspace.ts';

describe('the repository', () => {
  it('keeps its layers and the rules that guard them', () => {
    expect(checkLayers(ROOT)).toEqual([]);
  });

  it('decides from arguments alone', () => {
    expect(checkPurity(ROOT)).toEqual([]);
  });

  it('lists every error code with what to do', () => {
    expect(checkErrorDocument(ROOT)).toEqual([]);
  });

  it('speaks of the product alone', async () => {
    expect(await checkWords(ROOT)).toEqual([]);
  });

  it('says of every dependency why it is there', () => {
    const manifests = ['.', 'bench', 'tests/system', ...workspacePackages(ROOT).map(({ folder }) => folder)].map((folder) =>
      readManifest(join(ROOT, folder, 'package.json')),
    );
    const named = manifests.flatMap((one) => Object.keys({ ...one.dependencies, ...one.devDependencies, ...one.optionalDependencies }));
    const wanted = [...new Set(named.filter((name) => !name.startsWith('@firecrew/')))].sort();
    const rows = readFileSync(join(ROOT, 'docs', 'dependencies.md'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    const said = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''));
    expect(said.sort()).toEqual(wanted);
  });

  it('shows what its API reports say (refresh with: node tools/api-reports.ts --write)', () => {
    expect(checkApi(ROOT)).toEqual([]);
  });
});

/** The first TypeScript block under the heading `Example` of a README. */
function exampleOf(readme: string): string | undefined {
  const section = /^#{2,3} Example\b.*?$(?<text>[\s\S]*?)(?=^## |(?![\s\S]))/m.exec(readme)?.groups?.text ?? '';
  return /^```(?:ts|typescript)\n(?<code>[\s\S]*?)^```$/m.exec(section)?.groups?.code;
}

/** What an example says that it prints, one text for each call; undefined where a call has no such comment. */
function saidBy(code: string): readonly string[] | undefined {
  const said = code
    .split('\n')
    .filter((line) => line.includes('console.log('))
    .map((line) => / \/\/ (.*)$/.exec(line)?.[1]);
  return said.every((text) => text !== undefined) ? said : undefined;
}

/** Objects are printed over several lines where they are long. */
const withoutSpace = (text: string): string => text.replaceAll(/\s/g, '');

/** Packages whose examples do not say what they print: it is the machine's, or a test of their own looks at it. */
const SILENT = ['packages/egress-proxy', 'packages/vmm'];

describe('the example of a README', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'firecrew-example-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs `code` as a user of the package would: in a folder of their own, where it and its dependencies are installed. */
  async function runExample(packageFolder: string, code: string): Promise<{ readonly status: number; readonly output: string }> {
    const link = (name: string, target: string): void => {
      mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true });
      symlinkSync(target, join(folder, 'node_modules', name));
    };
    const one = workspacePackages(ROOT).find((candidate) => candidate.folder === packageFolder);
    if (one === undefined) throw new Error(`no package in ${packageFolder}`);
    link(one.manifest.name, join(ROOT, packageFolder));
    for (const name of Object.keys(one.manifest.dependencies)) link(name, join(ROOT, packageFolder, 'node_modules', name));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
    writeFileSync(join(folder, 'example.ts'), code);
    return await runTool(process.execPath, [join(folder, 'example.ts')], folder, { TMPDIR: folder });
  }

  const packages = workspacePackages(ROOT).filter(({ folder: path }) => path.startsWith('packages/') && path !== 'packages/cli');

  it.each(packages.map((one) => one.folder))('%s runs as it is, and prints what it says', async (packageFolder) => {
    const readme = readFileSync(join(ROOT, packageFolder, 'README.md'), 'utf8');
    const code = exampleOf(readme);
    if (code === undefined) throw new Error(`${packageFolder}/README.md has no ts block under a heading Example`);
    const { status, output } = await runExample(packageFolder, code);
    expect(status, output).toBe(0);
    const said = saidBy(code);
    expect(said === undefined).toBe(SILENT.includes(packageFolder));
    if (said !== undefined) expect(withoutSpace(output)).toBe(withoutSpace(said.join('')));
  });

  it.each([...packages.map((one) => one.folder), 'packages/cli'])('%s says what it owns', (packageFolder) => {
    const path = join(ROOT, packageFolder, 'README.md');
    expect(existsSync(path)).toBe(true);
    const headings = [...readFileSync(path, 'utf8').matchAll(/^## (.*)$/gm)].map(([, heading]) => heading?.toLowerCase());
    expect(headings).toEqual(expect.arrayContaining(['purpose', 'owns', 'does not own']));
  });

  it('type-checks as it is, as do all others', async () => {
    const written = packages.flatMap(({ folder: packageFolder, manifest }) => {
      const code = exampleOf(readFileSync(join(ROOT, packageFolder, 'README.md'), 'utf8'));
      if (code === undefined) return [];
      const own = join(folder, manifest.name.slice('@firecrew/'.length));
      mkdirSync(join(own, 'node_modules', '@firecrew'), { recursive: true });
      symlinkSync(join(ROOT, packageFolder), join(own, 'node_modules', manifest.name));
      for (const name of Object.keys(manifest.dependencies)) {
        mkdirSync(dirname(join(own, 'node_modules', name)), { recursive: true });
        symlinkSync(join(ROOT, packageFolder, 'node_modules', name), join(own, 'node_modules', name));
      }
      writeFileSync(join(own, 'package.json'), '{ "type": "module" }\n');
      writeFileSync(join(own, 'example.ts'), code);
      return [join(own, 'example.ts')];
    });
    const options = {
      composite: false,
      noEmit: true,
      declaration: false,
      declarationMap: false,
      typeRoots: [join(ROOT, 'node_modules/@types')],
    };
    const config = { extends: join(ROOT, 'tsconfig.base.json'), compilerOptions: options, files: written };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { status, output } = await runTool(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], folder);
    expect(status, output).toBe(0);
  });

  it('fails where the code does', async () => {
    const { status } = await runExample('packages/base', "import { noSuchThing } from '@firecrew/base';\nnoSuchThing();\n");
    expect(status).not.toBe(0);
  });

  it('says what it prints where every call does', () => {
    expect(saidBy("console.log(1); // 1\nif (a) console.log('http://x', 2); // http://x 2\n")).toEqual(['1', 'http://x 2']);
    expect(saidBy("console.log(1); // 1\nconsole.log('http://x');\n")).toBeUndefined();
  });

  it('is found in its section alone', () => {
    expect(exampleOf('# a\n\n```ts\nno\n```\n\n## Example\n\nwords\n\n```ts\nyes\n```\n\n## More\n')).toBe('yes\n');
    expect(exampleOf('## Example\n\nnone\n\n## More\n\n```ts\nno\n```\n')).toBeUndefined();
  });
});

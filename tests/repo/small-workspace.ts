// A small copy of this workspace with one package of three layers, in which a test plants what a check must refuse.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..', '..');

const COPIED = [
  '.gitignore',
  '.oxlintrc.json',
  'biome.json',
  'knip.json',
  'pnpm-workspace.yaml',
  'pnpm-lock.yaml',
  'tsconfig.base.json',
  'tsconfig.decision.json',
  'tsconfig.tests.json',
  'turbo.json',
  'tools/types/web-globals.d.ts',
];

const PACKAGES = [
  { name: 'base', tag: 'base', published: false, needs: [], index: "/** A greeting. */\nexport const GREETING = 'hello';\n" },
  {
    name: 'topology',
    tag: 'decision',
    published: true,
    needs: [],
    index: '/** The earlier of two times in ms. */\nexport function earlier(a: number, b: number): number {\n  return Math.min(a, b);\n}\n',
  },
  {
    name: 'sdk',
    tag: 'face',
    published: true,
    needs: ['topology'],
    index:
      "import { earlier } from '@firecrew/topology';\n\n/** The earliest of many times in ms. */\nexport function earliest(times: readonly number[]): number {\n  return times.reduce(earlier);\n}\n",
  },
] as const;

/** A workspace in a temporary folder. */
export interface SmallWorkspace {
  readonly root: string;
  /** Writes one file, relative to the root. */
  readonly write: (path: string, text: string) => void;
  /** Changes one file. */
  readonly edit: (path: string, change: (text: string) => string) => void;
  /** Formats all files; only the check of the format asks for it. */
  readonly format: () => void;
  readonly remove: () => void;
}

/** Makes the workspace; every check of the repository holds in it, once it is formatted. */
export function smallWorkspace(): SmallWorkspace {
  const root = mkdtempSync(join(tmpdir(), 'firecrew-checks-'));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const writeJson = (path: string, value: unknown): void => write(path, `${JSON.stringify(value, null, 2)}\n`);
  for (const path of COPIED) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    cpSync(join(ROOT, path), join(root, path));
  }
  const { packageManager }: { packageManager: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  writeJson('package.json', { name: 'small', private: true, type: 'module', packageManager });
  writeJson('tsconfig.json', { files: [], references: PACKAGES.map(({ name }) => ({ path: `packages/${name}` })) });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  for (const one of PACKAGES) writePackage(one, write, writeJson, root);
  execFileSync('git', ['init', '-q'], { cwd: root });
  return {
    root,
    write,
    edit: (path, change) => write(path, change(readFileSync(join(root, path), 'utf8'))),
    format: () => execFileSync(join(ROOT, 'node_modules', '.bin', 'biome'), ['format', '--write', '.'], { cwd: root, stdio: 'ignore' }),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

function writePackage(
  { name, tag, published, needs, index }: (typeof PACKAGES)[number],
  write: (path: string, text: string) => void,
  writeJson: (path: string, value: unknown) => void,
  root: string,
): void {
  const folder = `packages/${name}`;
  writeJson(`${folder}/package.json`, {
    name: `@firecrew/${name}`,
    version: '0.1.0',
    ...(published ? {} : { private: true }),
    license: 'Apache-2.0',
    type: 'module',
    sideEffects: false,
    exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' }, './package.json': './package.json' },
    files: ['dist'],
    dependencies: Object.fromEntries(needs.map((need) => [`@firecrew/${need}`, 'workspace:^'])),
  });
  writeJson(`${folder}/turbo.json`, { extends: ['//'], tags: [tag] });
  const decision = tag === 'decision';
  writeJson(`${folder}/tsconfig.json`, {
    extends: decision ? '../../tsconfig.decision.json' : '../../tsconfig.base.json',
    compilerOptions: { rootDir: 'src', outDir: 'dist' },
    include: ['src', ...(decision ? ['../../tools/types/web-globals.d.ts'] : [])],
    references: needs.map((need) => ({ path: `../${need}` })),
  });
  write(`${folder}/src/index.ts`, index);
  for (const need of needs) {
    mkdirSync(join(root, folder, 'node_modules', '@firecrew'), { recursive: true });
    symlinkSync(join(root, 'packages', need), join(root, folder, 'node_modules', '@firecrew', need));
  }
}

/** One command of a set-up, and the file that asks for it. */
export interface SetupStep {
  readonly file: string;
  readonly command: string;
}

/** What a tree's root says about how to set it up. */
export interface DetectedSetup {
  /** Shell command, or undefined where nothing was recognised. */
  readonly command: string | undefined;
  readonly steps: readonly SetupStep[];
  /** One sentence for people: which file led to which command, or why there is none. */
  readonly reason: string;
  /** Hosts the default registries of these tools need; advice for the set-up's egress policy, never a permission. */
  readonly hosts: readonly string[];
}

interface Rule {
  /** One set-up for each ecosystem: the first rule whose file is there. */
  readonly ecosystem: string;
  readonly file: string;
  readonly command: string | ((names: ReadonlySet<string>) => string);
  readonly hosts: readonly string[];
}

const NPM = ['registry.npmjs.org'];
const PYPI = ['pypi.org', 'files.pythonhosted.org'];
const yarn = (names: ReadonlySet<string>): string =>
  names.has('.yarnrc.yml') ? 'yarn install --immutable' : 'yarn install --frozen-lockfile --non-interactive';

const RULES: readonly Rule[] = [
  { ecosystem: 'node', file: 'pnpm-lock.yaml', command: 'pnpm install --frozen-lockfile', hosts: NPM },
  { ecosystem: 'node', file: 'yarn.lock', command: yarn, hosts: ['registry.yarnpkg.com', ...NPM] },
  { ecosystem: 'node', file: 'bun.lock', command: 'bun install --frozen-lockfile', hosts: NPM },
  { ecosystem: 'node', file: 'bun.lockb', command: 'bun install --frozen-lockfile', hosts: NPM },
  { ecosystem: 'node', file: 'npm-shrinkwrap.json', command: 'npm ci', hosts: NPM },
  { ecosystem: 'node', file: 'package-lock.json', command: 'npm ci', hosts: NPM },
  { ecosystem: 'deno', file: 'deno.lock', command: 'deno install --frozen', hosts: ['jsr.io', ...NPM] },
  { ecosystem: 'python', file: 'uv.lock', command: 'uv sync --frozen', hosts: PYPI },
  { ecosystem: 'python', file: 'poetry.lock', command: 'poetry install --no-interaction', hosts: PYPI },
  { ecosystem: 'python', file: 'pdm.lock', command: 'pdm sync', hosts: PYPI },
  { ecosystem: 'python', file: 'Pipfile.lock', command: 'pipenv sync --dev', hosts: PYPI },
  // A virtual environment in the tree: the system's own Python refuses installs on many images, and on a shared host it must stay as it is.
  {
    ecosystem: 'python',
    file: 'requirements.txt',
    command: 'python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt',
    hosts: PYPI,
  },
  { ecosystem: 'rust', file: 'Cargo.lock', command: 'cargo fetch --locked', hosts: ['index.crates.io', 'static.crates.io'] },
  { ecosystem: 'go', file: 'go.sum', command: 'go mod download', hosts: ['proxy.golang.org', 'sum.golang.org'] },
  { ecosystem: 'ruby', file: 'Gemfile.lock', command: 'BUNDLE_FROZEN=true bundle install', hosts: ['rubygems.org', 'index.rubygems.org'] },
  {
    ecosystem: 'php',
    file: 'composer.lock',
    command: 'composer install --no-interaction',
    hosts: ['repo.packagist.org', 'api.github.com', 'codeload.github.com'],
  },
  { ecosystem: 'elixir', file: 'mix.lock', command: 'mix deps.get', hosts: ['repo.hex.pm', 'builds.hex.pm'] },
  { ecosystem: 'dart', file: 'pubspec.lock', command: 'dart pub get --enforce-lockfile', hosts: ['pub.dev'] },
  { ecosystem: 'dotnet', file: 'packages.lock.json', command: 'dotnet restore --locked-mode', hosts: ['api.nuget.org'] },
  { ecosystem: 'swift', file: 'Package.resolved', command: 'swift package resolve', hosts: ['github.com'] },
];

/** Files that declare dependencies without fixing them, and what would fix them. */
const UNLOCKED: ReadonlyMap<string, string> = new Map([
  ['package.json', 'a lock file such as package-lock.json'],
  ['pyproject.toml', 'uv.lock, poetry.lock or requirements.txt'],
  ['Cargo.toml', 'Cargo.lock'],
  ['go.mod', 'go.sum'],
  ['Gemfile', 'Gemfile.lock'],
  ['composer.json', 'composer.lock'],
]);

/** Detects the set-up command from the names of the regular files in a tree's root. Where several ecosystems are there, each is set up in turn. */
export function detectSetup(rootFileNames: Iterable<string>): DetectedSetup {
  const names = new Set(rootFileNames);
  const found = new Map<string, Rule>();
  for (const rule of RULES) if (names.has(rule.file) && !found.has(rule.ecosystem)) found.set(rule.ecosystem, rule);
  const rules = [...found.values()];
  if (rules.length === 0) return { command: undefined, steps: [], reason: whyNone(names), hosts: [] };
  const steps = rules.map((rule) => ({ file: rule.file, command: typeof rule.command === 'string' ? rule.command : rule.command(names) }));
  return {
    command: steps.map((step) => step.command).join(' && '),
    steps,
    reason: steps.map((step) => `${step.file} is there, so the set-up runs \`${step.command}\``).join('; '),
    hosts: [...new Set(rules.flatMap((rule) => rule.hosts))],
  };
}

function whyNone(names: ReadonlySet<string>): string {
  const unlocked = [...UNLOCKED].find(([file]) => names.has(file));
  if (unlocked === undefined) return 'no lock file is in the root of the tree, so no set-up runs';
  return `${unlocked[0]} is there without ${unlocked[1]}, so no set-up runs; give one if the check needs it`;
}

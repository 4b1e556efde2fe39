/** Why a path counts as an input of the check. */
export type CheckInputKind = 'check_script' | 'test_file' | 'runner_configuration';

/** A changed path that the check's result depends on. */
export interface CheckInput {
  readonly path: string;
  readonly kind: CheckInputKind;
}

const TEST_FOLDERS = new Set([
  'test',
  'tests',
  '__tests__',
  'spec',
  'specs',
  'e2e',
  'testdata',
  'fixtures',
  '__fixtures__',
  '__mocks__',
  '__snapshots__',
]);
const TEST_FILE =
  /(?:[._-](?:test|tests|spec|specs|e2e|cy)\.[^.]+|^tests?_.*\.[^.]+|^(?:tests?|specs?)\.[^.]+$|(?:Test|Tests|Spec|IT)\.(?:java|kt|scala|groovy|cs|swift|php)|\.snap|\.feature|\.bats)$/;
/** Test and task runners whose configuration matters whatever the command is called. */
const ALWAYS_CONFIGURATION =
  /^(?:vitest\.(?:config|workspace)\..+|jest\.(?:config|setup)\..+|\.mocharc(?:\..+)?|karma\.conf\..+|ava\.config\..+|playwright\.config\..+|cypress\.config\..+|\.nycrc.*|\.taprc|conftest\.py|pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc|phpunit\.xml(?:\.dist)?|\.rspec|nextest\.toml|web-test-runner\.config\..+|wdio\.conf\..+)$/;
/** Configuration that matters where the command names the tool. */
const TOOL_CONFIGURATION: ReadonlyArray<{ readonly tools: RegExp; readonly files: RegExp }> = [
  {
    tools: /^(?:npm|npx|pnpm|pnpx|yarn|bun|bunx|deno|node|turbo|nx|lerna)$/,
    files:
      /^(?:package\.json|\.npmrc|\.yarnrc(?:\.yml)?|bunfig\.toml|deno\.jsonc?|turbo\.json|nx\.json|project\.json|vite\.config\..+|babel\.config\..+|\.babelrc.*|tsconfig.*\.json)$/,
  },
  {
    tools: /^(?:tsc|tsx|ts-node|vitest|jest|mocha|ava|eslint|biome|oxlint|prettier)$/,
    files:
      /^(?:package\.json|tsconfig.*\.json|vite\.config\..+|babel\.config\..+|\.babelrc.*|eslint\.config\..+|\.eslintrc.*|biome\.jsonc?|\.oxlintrc\.json|\.prettierrc.*)$/,
  },
  { tools: /^(?:make|gmake)$/, files: /^(?:GNUmakefile|[Mm]akefile|.+\.mk)$/ },
  { tools: /^just$/, files: /^\.?[Jj]ustfile$/ },
  { tools: /^task$/, files: /^[Tt]askfile\.ya?ml$/ },
  { tools: /^(?:cmake|ctest|ninja)$/, files: /^(?:CMakeLists\.txt|CTestTestfile\.cmake|CMakePresets\.json)$/ },
  {
    tools: /^(?:python[0-9.]*|pytest|py\.test|tox|nox|uv|poetry|hatch|pdm|ruff|mypy|coverage)$/,
    files: /^(?:pyproject\.toml|setup\.cfg|setup\.py|ruff\.toml|mypy\.ini|sitecustomize\.py)$/,
  },
  { tools: /^(?:cargo|cross)$/, files: /^(?:Cargo\.toml|build\.rs|rust-toolchain(?:\.toml)?)$/ },
  { tools: /^(?:go|gotestsum)$/, files: /^(?:go\.mod|go\.work)$/ },
  { tools: /^(?:mvn|mvnw)$/, files: /^(?:pom\.xml|maven\.config|jvm\.config)$/ },
  { tools: /^(?:gradle|gradlew)$/, files: /^(?:(?:build|settings)\.gradle(?:\.kts)?|gradle\.properties)$/ },
  { tools: /^(?:rake|rspec|bundle|bundler|ruby|rails)$/, files: /^(?:Rakefile|Gemfile|spec_helper\.rb|rails_helper\.rb|test_helper\.rb)$/ },
  { tools: /^(?:composer|php|phpunit|pest)$/, files: /^composer\.json$/ },
  { tools: /^dotnet$/, files: /^(?:.+\.(?:csproj|fsproj|sln|runsettings)|Directory\.Build\.(?:props|targets))$/ },
  { tools: /^mix$/, files: /^(?:mix\.exs|test_helper\.exs)$/ },
  { tools: /^bazel(?:isk)?$/, files: /^(?:BUILD(?:\.bazel)?|WORKSPACE|MODULE\.bazel|\.bazelrc)$/ },
];

/**
 * The changed paths that the check's own result depends on, in the order given: tests, configuration of the runner, and files or folders
 * that the command names. It is a heuristic that says more than it must: a hit is reported, it refuses nothing.
 */
export function checkInputsChanged(changedPaths: Iterable<string>, checkCommand: string): readonly CheckInput[] {
  const words = wordsOf(checkCommand);
  const tools = words.map((word) => word.slice(word.lastIndexOf('/') + 1));
  const configurations = TOOL_CONFIGURATION.filter((row) => tools.some((tool) => row.tools.test(tool))).map((row) => row.files);
  const bases = ['', ...words.flatMap((word, at) => (words[at - 1] === 'cd' ? [`${asTreePath(word)}/`] : []))];
  const under = (named: readonly string[]): Set<string> => new Set(bases.flatMap((base) => named.map((word) => base + asTreePath(word))));
  const files = under(words);
  // A bare word is a file or a subcommand, seldom a folder: `npm test` says nothing of a folder called test.
  const folders = under(words.filter((word) => word.includes('/')));
  const found: CheckInput[] = [];
  for (const path of changedPaths) {
    const kind = kindOf(path, files, folders, configurations);
    if (kind !== undefined) found.push({ path, kind });
  }
  return found;
}

function kindOf(
  path: string,
  files: ReadonlySet<string>,
  folders: ReadonlySet<string>,
  configurations: readonly RegExp[],
): CheckInputKind | undefined {
  const parts = path.split('/');
  const name = parts.at(-1) ?? '';
  if (files.has(path) || parts.some((_, at) => folders.has(parts.slice(0, at).join('/')))) return 'check_script';
  if (TEST_FILE.test(name) || parts.slice(0, -1).some((part) => TEST_FOLDERS.has(part.toLowerCase()))) return 'test_file';
  if (ALWAYS_CONFIGURATION.test(name) || configurations.some((files) => files.test(name))) return 'runner_configuration';
  return undefined;
}

/** The words of a shell command as far as they can be seen without running it: quotes and operators only separate. */
function wordsOf(command: string): string[] {
  return command.split(/[\s'"`;&|()<>{}$=]+/).filter((word) => word !== '' && !word.startsWith('-'));
}

function asTreePath(word: string): string {
  return word.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '') || '.';
}

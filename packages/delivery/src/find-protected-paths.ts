import { asciiFolded } from './path-text.ts';

/** Why a path is protected: what runs, or decides, when it reaches the remote. */
export type ProtectedReason = 'ci' | 'code_owners' | 'hook_manager' | 'forge_settings' | 'dependency_bot';

/** A protected path and the rule that named it. */
export interface ProtectedPath<P extends string | Uint8Array = string | Uint8Array> {
  readonly path: P;
  readonly reason: ProtectedReason;
  readonly rule: string;
}

interface Rule {
  readonly reason: ProtectedReason;
  readonly rule: string;
  readonly matches: (path: string, name: string) => boolean;
}

function under(reason: ProtectedReason, ...folders: string[]): Rule[] {
  return folders.map((folder) => ({ reason, rule: `${folder}/**`, matches: (path) => path.startsWith(`${folder}/`) || path === folder }));
}
function root(reason: ProtectedReason, ...paths: string[]): Rule[] {
  return paths.map((rule) => ({ reason, rule, matches: (path) => path === rule }));
}
function anywhere(reason: ProtectedReason, ...names: string[]): Rule[] {
  return names.map((wanted) => ({ reason, rule: `**/${wanted}`, matches: (_path, name) => name === wanted }));
}
function stem(reason: ProtectedReason, wanted: RegExp, rule: string): Rule[] {
  return [{ reason, rule, matches: (_path, name) => wanted.test(name) }];
}

const RULES: readonly Rule[] = [
  ...under('ci', '.github/workflows', '.github/actions', '.forgejo/workflows', '.forgejo/actions', '.gitea/workflows', '.gitea/actions'),
  ...under(
    'ci',
    '.gitlab/ci',
    '.circleci',
    '.buildkite',
    '.woodpecker',
    '.semaphore',
    '.teamcity',
    '.tekton',
    '.azure-pipelines',
    '.drone',
  ),
  ...under('ci', '.builds', '.cirrus', '.harness', '.concourse'),
  ...stem('ci', /^\.gitlab-ci\.ya?ml$/, '**/.gitlab-ci.yml'),
  ...stem('ci', /^\.?azure-pipelines[^/]*\.ya?ml$/, '**/azure-pipelines*.yml'),
  ...stem('ci', /^\.?(?:travis|drone|appveyor|woodpecker|build|cirrus|circle)\.ya?ml$/, '**/.<ci>.yml'),
  ...stem('ci', /^bitbucket-pipelines\.ya?ml$/, '**/bitbucket-pipelines.yml'),
  ...stem('ci', /^(?:cloudbuild|buildspec|codefresh|screwdriver|wercker|bitrise|codemagic|concourse)\.(?:ya?ml|json)$/, '**/<ci>.yml'),
  ...stem('ci', /^jenkinsfile(?:\..+)?$/, '**/Jenkinsfile*'),
  ...anywhere('ci', '.cirrus.star', '.drone.star', '.drone.jsonnet'),
  ...anywhere('code_owners', 'codeowners'),
  ...under('hook_manager', '.husky', '.githooks', '.git-hooks', '.lefthook', '.lefthook-local', '.overcommit', '.git_hooks'),
  ...stem('hook_manager', /^\.?lefthook(?:-local)?\.(?:ya?ml|toml|jsonc?)$/, '**/lefthook.yml'),
  ...stem('hook_manager', /^\.pre-commit-(?:config|hooks)\.ya?ml$/, '**/.pre-commit-config.yaml'),
  ...stem('hook_manager', /^\.(?:huskyrc|lintstagedrc|simple-git-hooks)(?:\..+)?$/, '**/.huskyrc*'),
  ...stem('hook_manager', /^simple-git-hooks\..+$/, '**/simple-git-hooks.*'),
  ...anywhere('hook_manager', '.overcommit.yml', 'prek.toml', '.captainhook.json', 'captainhook.json', 'grumphp.yml', 'grumphp.yml.dist'),
  ...root('forge_settings', '.gitmodules', '.gitattributes', '.mailmap', '.lfsconfig'),
  ...stem('forge_settings', /^\.gitmodules$/, '**/.gitmodules'),
  ...stem('forge_settings', /^(?:settings|mergify)\.ya?ml$/, '.github/settings.yml').map((rule) => ({
    ...rule,
    matches: (path: string, name: string) => /^\.(?:github|mergify)\//.test(path) && rule.matches(path, name),
  })),
  ...stem('forge_settings', /^\.mergify\.ya?ml$/, '**/.mergify.yml'),
  ...stem('dependency_bot', /^\.?renovate(?:rc)?(?:\.json5?)?$/, '**/renovate.json'),
  ...stem('dependency_bot', /^dependabot\.ya?ml$/, '**/dependabot.yml'),
];

/** The rule that protects `path` (bytes or text, relative to the root, `/` between parts, any case), or undefined. */
export function isProtectedPath(path: string | Uint8Array): { readonly reason: ProtectedReason; readonly rule: string } | undefined {
  const folded = asciiFolded(path);
  const name = folded.slice(folded.lastIndexOf('/') + 1);
  const hit = RULES.find((rule) => rule.matches(folded, name));
  return hit === undefined ? undefined : { reason: hit.reason, rule: hit.rule };
}

/** Those of `paths` that a person must approve before they are pushed, in the given order. */
export function findProtectedPaths<P extends string | Uint8Array>(paths: Iterable<P>): ProtectedPath<P>[] {
  const found: ProtectedPath<P>[] = [];
  for (const path of paths) {
    const hit = isProtectedPath(path);
    if (hit !== undefined) found.push({ path, ...hit });
  }
  return found;
}

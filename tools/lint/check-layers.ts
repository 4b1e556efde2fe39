// Guards the rules that guard the layers: what turbo.json allows, which package lies in which layer, and how decisions are type-checked.
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { identifierName, isNode, listSources, parseSource } from './source-files.ts';
import { readJson, recordOf, strings, type WorkspacePackage, workspacePackages } from './workspace-packages.ts';

/** What each layer may depend on. A change here is a change of the architecture (`docs/architecture.md`). */
export const LAYER_RULES: Readonly<Record<string, readonly string[]>> = {
  base: ['base'],
  decision: [],
  contract: ['base', 'contract', 'decision'],
  flow: ['base', 'contract', 'flow', 'decision'],
  adapter: ['base', 'contract', 'flow', 'adapter', 'decision'],
  face: ['base', 'contract', 'flow', 'adapter', 'face', 'decision'],
  app: ['base', 'contract', 'flow', 'adapter', 'decision'],
};

/** The layer of every package; a new package is added here, in sight of a reviewer. */
export const LAYER_OF: Readonly<Record<string, string>> = {
  '@firecrew/base': 'base',
  '@firecrew/egress-policy': 'decision',
  '@firecrew/stop-gate': 'decision',
  '@firecrew/topology': 'decision',
  '@firecrew/artifact-capture': 'decision',
  '@firecrew/seat-keys': 'decision',
  '@firecrew/placement': 'decision',
  '@firecrew/mission': 'decision',
  '@firecrew/delivery': 'decision',
  '@firecrew/spawn-bounds': 'decision',
  '@firecrew/model-route': 'decision',
  '@firecrew/model-routing': 'decision',
  '@firecrew/repo-digest': 'decision',
  '@firecrew/evidence': 'decision',
  '@firecrew/protocol': 'contract',
  '@firecrew/backend': 'contract',
  '@firecrew/link': 'flow',
  '@firecrew/egress-proxy': 'adapter',
  '@firecrew/model-proxy': 'adapter',
  '@firecrew/credential-broker': 'adapter',
  '@firecrew/policy-file': 'adapter',
  '@firecrew/vmm': 'adapter',
  '@firecrew/rootfs': 'adapter',
  '@firecrew/workspace': 'adapter',
  '@firecrew/store': 'adapter',
  '@firecrew/harness': 'adapter',
  '@firecrew/key-store': 'adapter',
  '@firecrew/sdk': 'face',
  '@firecrew/cli': 'face',
  '@firecrew/dashboard': 'face',
  '@firecrew/server': 'app',
  '@firecrew/node-agent': 'app',
  '@firecrew/guest-agent': 'app',
};

/** The packages that go to the registry; every other one is private. */
export const PUBLISHED: readonly string[] = [
  '@firecrew/artifact-capture',
  '@firecrew/cli',
  '@firecrew/egress-policy',
  '@firecrew/protocol',
  '@firecrew/sdk',
  '@firecrew/seat-keys',
  '@firecrew/stop-gate',
  '@firecrew/topology',
];

/** Published as programs in files that need no other package of ours. */
const BUNDLED: readonly string[] = ['@firecrew/cli'];

/** Globals beyond the language that a decision may use: pure, and the same everywhere. */
const DECISION_GLOBALS = ['TextDecoder', 'TextEncoder', 'URL'];
const DECISION_CONFIG = '../../tsconfig.decision.json';
const WEB_GLOBALS = 'tools/types/web-globals.d.ts';

/** Every departure from the layers under `root`, one sentence each. */
export function checkLayers(root: string): readonly string[] {
  const packages = workspacePackages(root);
  return [
    ...checkRules(root),
    ...checkDecisionConfig(root),
    ...checkRootReferences(root, packages),
    ...packages.flatMap((one) => checkPackage(root, one)),
  ];
}

function checkRules(root: string): readonly string[] {
  const tags = recordOf(recordOf(recordOf(readJson(join(root, 'turbo.json'))).boundaries).tags);
  const names = [...new Set([...Object.keys(LAYER_RULES), ...Object.keys(tags)])];
  return names.flatMap((name) => {
    const allowed = recordOf(recordOf(tags[name]).dependencies).allow;
    const given = Array.isArray(allowed) ? [...strings(allowed)].sort().join(' ') : 'nothing said';
    const wanted = [...(LAYER_RULES[name] ?? ['no such layer'])].sort().join(' ');
    return given === wanted ? [] : [`turbo.json: the layer ${name} allows [${given}], not [${wanted}]`];
  });
}

function checkDecisionConfig(root: string): readonly string[] {
  const options = recordOf(recordOf(readJson(join(root, 'tsconfig.decision.json'))).compilerOptions);
  const findings: string[] = [];
  if (!Array.isArray(options.types) || options.types.length > 0) findings.push('tsconfig.decision.json: `types` is not empty');
  if (strings(options.lib).join() !== 'es2024') findings.push('tsconfig.decision.json: `lib` is not [es2024]');
  if (!existsSync(join(root, WEB_GLOBALS))) return [...findings, `${WEB_GLOBALS} is missing`];
  const declared = parseSource(root, WEB_GLOBALS).program.body;
  const names = Array.isArray(declared) ? declared.map((node) => (isNode(node) ? (identifierName(node.id) ?? node.type) : '')) : [];
  if (names.sort().join() !== DECISION_GLOBALS.join())
    findings.push(`${WEB_GLOBALS} declares ${names.join(', ')}, not ${DECISION_GLOBALS.join(', ')}`);
  return findings;
}

function checkRootReferences(root: string, packages: readonly WorkspacePackage[]): readonly string[] {
  const given = referencesOf(root, '.').sort().join(' ');
  const wanted = packages.map(({ folder }) => folder).sort();
  return given === wanted.join(' ') ? [] : ['tsconfig.json: its references are not all packages of the workspace'];
}

function checkPackage(root: string, { folder, manifest, tags }: WorkspacePackage): readonly string[] {
  const findings: string[] = [];
  const wanted = LAYER_OF[manifest.name];
  if (wanted === undefined) findings.push(`${folder}: ${manifest.name} has no layer; add it to tools/lint/check-layers.ts`);
  if (tags.length !== 1 || tags[0] !== wanted) findings.push(`${folder}/turbo.json: tags [${tags.join(', ')}], not [${wanted ?? ''}]`);
  if (manifest.private === PUBLISHED.includes(manifest.name)) {
    findings.push(`${folder}/package.json: "private" is ${manifest.private}, against the list of published packages`);
  }
  const ours = (names: Readonly<Record<string, string>>) => Object.keys(names).filter((name) => name.startsWith('@firecrew/'));
  const needed = ours(manifest.dependencies);
  // A program that is published as a bundle carries the code of what it is built from, and asks a registry for none of it.
  const bundled = BUNDLED.includes(manifest.name) ? ours(manifest.devDependencies) : [];
  const missing = needed.filter((name) => !manifest.private && !PUBLISHED.includes(name));
  if (missing.length > 0) findings.push(`${folder}/package.json: published, and depends on ${missing.join(', ')}, which no registry has`);
  const references = referencesOf(root, folder).map((path) => `@firecrew/${posix.basename(path)}`);
  const declared = [...needed, ...bundled];
  const difference = [...declared, ...references].filter((name) => declared.includes(name) !== references.includes(name));
  if (difference.length > 0) findings.push(`${folder}: dependencies and tsconfig references differ in ${difference.join(', ')}`);
  return wanted === 'decision'
    ? [...findings, ...checkDecision(root, folder, { ...manifest.dependencies, ...manifest.devDependencies })]
    : findings;
}

function checkDecision(root: string, folder: string, dependencies: Readonly<Record<string, string>>): readonly string[] {
  const config = recordOf(readJson(join(root, folder, 'tsconfig.json')));
  const options = recordOf(config.compilerOptions);
  const findings: string[] = [];
  if (config.extends !== DECISION_CONFIG) findings.push(`${folder}/tsconfig.json does not extend ${DECISION_CONFIG}`);
  if ('types' in options || 'lib' in options) findings.push(`${folder}/tsconfig.json sets its own types or lib`);
  const ours = Object.keys(dependencies).filter((name) => name.startsWith('@firecrew/'));
  if (ours.length > 0) findings.push(`${folder}/package.json: a decision depends on ${ours.join(', ')}`);
  for (const path of listSources(root, `${folder}/src`)) {
    if (/^\s*\/\/\/\s*<reference/m.test(readFileSync(join(root, path), 'utf8'))) findings.push(`${path} pulls in types by reference`);
  }
  return findings;
}

function referencesOf(root: string, folder: string): string[] {
  const references = recordOf(readJson(join(root, folder, 'tsconfig.json'))).references;
  if (!Array.isArray(references)) return [];
  return references.map((entry) => posix.join(folder, String(recordOf(entry).path)));
}

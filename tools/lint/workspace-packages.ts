// The packages of the workspace with what the checks need to know about each.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A package.json, as far as the checks read it. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private: boolean;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** One package of the workspace. */
export interface WorkspacePackage {
  /** Relative to the root, such as `packages/base`. */
  readonly folder: string;
  readonly manifest: Manifest;
  /** The tags of its turbo.json. */
  readonly tags: readonly string[];
}

/** All packages under `packages` and `apps` of `root`, sorted by folder. */
export function workspacePackages(root: string): readonly WorkspacePackage[] {
  return ['packages', 'apps']
    .flatMap((group) => (existsSync(join(root, group)) ? folderNames(join(root, group)).map((name) => `${group}/${name}`) : []))
    .filter((folder) => existsSync(join(root, folder, 'package.json')))
    .sort()
    .map((folder) => ({
      folder,
      manifest: readManifest(join(root, folder, 'package.json')),
      tags: strings(recordOf(readJson(join(root, folder, 'turbo.json'))).tags),
    }));
}

/** pnpm's globs leave out names that begin with a dot, and so do we. */
function folderNames(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => !name.startsWith('.'));
}

/** A JSON file (comments are refused), or undefined where there is none. */
export function readJson(path: string): unknown {
  if (!existsSync(path)) return undefined;
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
  return value;
}

/** `value` where it is an object, else an empty one. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** The strings of an array; anything else gives none. */
export function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

/** Reads a package.json. */
export function readManifest(path: string): Manifest {
  const raw = recordOf(readJson(path));
  const text = (key: string): string => (typeof raw[key] === 'string' ? raw[key] : '');
  return {
    name: text('name'),
    version: text('version'),
    private: raw.private === true,
    dependencies: stringRecord(raw.dependencies),
    devDependencies: stringRecord(raw.devDependencies),
    optionalDependencies: stringRecord(raw.optionalDependencies),
    exports: recordOf(raw.exports),
  };
}

function stringRecord(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(recordOf(value)).flatMap(([key, entry]) => (typeof entry === 'string' ? [[key, entry]] : []));
  return Object.fromEntries(entries);
}

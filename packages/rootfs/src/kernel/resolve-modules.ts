import { CodedError } from '@firecrew/base';
import { moduleName } from './module-info.ts';

/** Modules of one kernel: where each lies, which it needs, and which are part of the kernel itself. */
export interface ModuleIndex {
  /** Path of each module below `lib/modules/VERSION`, by name. */
  readonly paths: ReadonlyMap<string, string>;
  readonly depends: (name: string) => readonly string[];
  readonly builtIn: ReadonlySet<string>;
}

/** Which modules a guest loads. */
export interface ModulePlan {
  /** Names in the order they are loaded in: each behind what it needs. */
  readonly load: readonly string[];
  readonly builtIn: readonly string[];
  readonly missing: readonly string[];
}

const COMPRESSED = /\.ko(\.(xz|zst|gz))?$/;

/** The name of a module by its path; undefined for other files. */
export function moduleOfPath(path: string): string | undefined {
  if (!COMPRESSED.test(path)) return undefined;
  return moduleName(path.slice(path.lastIndexOf('/') + 1).replace(COMPRESSED, ''));
}

/** Reads `modules.dep`, as depmod writes it: paths of modules with those of all they need. Throws `modules_malformed`. */
export function parseModulesDep(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    const name = moduleOfPath(line.slice(0, Math.max(colon, 0)));
    const needs = line
      .slice(colon + 1)
      .split(' ')
      .filter((path) => path !== '')
      .map(moduleOfPath);
    if (name === undefined || needs.includes(undefined)) throw malformed('modules.dep has a line that names no module');
    found.set(
      name,
      needs.flatMap((one) => (one === undefined ? [] : [one])),
    );
  }
  return found;
}

/** Reads `modules.builtin`: a path for each module that is part of the kernel. */
export function parseModulesBuiltin(text: string): ReadonlySet<string> {
  return new Set(text.split('\n').flatMap((line) => moduleOfPath(line.trim()) ?? []));
}

/** What to load, in order, so that all wanted modules are there. Throws `modules_malformed` for a circle or a need that is nowhere. */
export function resolveModules(wanted: readonly string[], index: ModuleIndex): ModulePlan {
  const load: string[] = [];
  const builtIn: string[] = [];
  const missing: string[] = [];
  const visit = (name: string, neededBy: readonly string[]): void => {
    if (load.includes(name) || index.builtIn.has(name)) return;
    if (neededBy.includes(name)) throw malformed(`${name} needs itself`);
    if (!index.paths.has(name)) throw malformed(`${neededBy.at(-1) ?? ''} needs ${name}, which is nowhere`);
    for (const need of index.depends(name)) visit(need, [...neededBy, name]);
    load.push(name);
  };
  for (const name of wanted.map(moduleName)) {
    if (index.builtIn.has(name)) builtIn.push(name);
    else if (index.paths.has(name)) visit(name, []);
    else missing.push(name);
  }
  return { load, builtIn, missing };
}

function malformed(what: string): CodedError {
  return new CodedError('modules_malformed', `the modules of the kernel cannot be used: ${what}`, {
    action: 'Take the package of the kernel as its makers deliver it, or run depmod.',
  });
}

// What was installed and built last, so that a second start does neither.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const WORKSPACE_FOLDERS = ['packages', 'apps'];
/** Folders whose packages are installed, and not built. */
const TEST_FOLDERS = ['tests'];
/** Folders and files of a workspace package that its build does not read. */
const NOT_SOURCES = new Set(['node_modules', 'dist', 'bundle', 'test', '.turbo', 'README.md', 'tsconfig.tsbuildinfo']);
const ROOT_SOURCES = ['tsconfig.base.json', 'tsconfig.decision.json', 'turbo.json'];

/** The folders of all workspace packages, relative to `root`, sorted. */
export function workspaceFolders(root) {
  return packageFolders(root, WORKSPACE_FOLDERS);
}

function packageFolders(root, groups) {
  return groups
    .flatMap((group) => {
      const folder = join(root, group);
      if (!existsSync(folder)) return [];
      return readdirSync(folder)
        .filter((name) => !name.startsWith('.'))
        .map((name) => join(group, name))
        .filter((name) => existsSync(join(root, name, 'package.json')));
    })
    .sort();
}

/** Changes whenever an install could give another result. */
export function installStamp(root) {
  const manifests = packageFolders(root, [...WORKSPACE_FOLDERS, ...TEST_FOLDERS]).map((folder) => join(folder, 'package.json'));
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests];
  return digest(root, files, [process.platform, process.arch]);
}

/** Changes whenever a build could give another result. */
export function sourceStamp(root) {
  const sources = [...ROOT_SOURCES, ...walk(root, 'tools/types'), ...workspaceFolders(root).flatMap((folder) => walk(root, folder))];
  return digest(root, sources, [installStamp(root)]);
}

/** Changes when what was built is no longer what the last build left: removed, or built by other means. */
export function outputStamp(root) {
  return digest(root, [], outputMarks(root));
}

/** True where the stamp kept under `name` is `stamp`. */
export function isStamped(root, name, stamp) {
  try {
    return readFileSync(stampFile(root, name), 'utf8') === stamp;
  } catch {
    return false;
  }
}

/** Keeps `stamp` under `name`. */
export function keepStamp(root, name, stamp) {
  const file = stampFile(root, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, stamp);
  renameSync(`${file}.new`, file);
}

// In node_modules: who deletes that also wants a new install.
function stampFile(root, name) {
  return join(root, 'node_modules', `.firecrew-${name}`);
}

function outputMarks(root) {
  return workspaceFolders(root).map((folder) => {
    const mark = (path) => (existsSync(path) ? String(statSync(path).mtimeMs) : 'missing');
    const dist = existsSync(join(root, folder, 'dist', 'index.js')) || !existsSync(join(root, folder, 'src', 'index.ts'));
    return `${folder} ${mark(join(root, folder, 'tsconfig.tsbuildinfo'))} ${mark(join(root, folder, 'bundle'))} ${dist}`;
  });
}

function walk(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (NOT_SOURCES.has(entry.name)) return [];
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return walk(root, path);
    return entry.isFile() ? [path] : [];
  });
}

function digest(root, files, extra) {
  const hash = createHash('sha256');
  for (const file of [...files].sort()) {
    const content = existsSync(join(root, file)) ? readFileSync(join(root, file)) : Buffer.from('missing');
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  for (const line of extra) hash.update(`${line}\n`);
  return hash.digest('hex');
}

// Source files as text and as syntax trees.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';

const NOT_ENTERED = new Set(['node_modules', 'dist', 'bundle', '.git', '.turbo', 'coverage', 'snapshots', 'cases']);
const SOURCE = /\.(ts|mts|mjs|cjs|js)$/;

/** A node of an ESTree syntax tree, by shape. */
export interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** A comment of a source file. */
export interface SourceComment {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

/** One parsed source file. */
export interface SourceFile {
  /** Relative to the root. */
  readonly path: string;
  readonly text: string;
  readonly program: SyntaxNode;
  readonly comments: readonly SourceComment[];
  /** The line of an offset, counted from 1. */
  readonly lineAt: (offset: number) => number;
}

/** The source files under `folder` (relative to `root`), sorted; nothing where the folder does not exist. */
export function listSources(root: string, folder: string): readonly string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return NOT_ENTERED.has(entry.name) ? [] : listSources(root, path);
      return entry.isFile() && SOURCE.test(entry.name) && !entry.name.endsWith('.d.ts') ? [path] : [];
    })
    .sort();
}

/** Reads and parses `path`; throws where it does not parse. */
export function parseSource(root: string, path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  const { program, comments, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path} does not parse: ${error.message}`);
  if (!isNode(program)) throw new Error(`${path} has no syntax tree`);
  return { path, text, program, comments, lineAt: (offset) => text.slice(0, offset).split('\n').length };
}

/** True where `value` is a node of a syntax tree. */
export function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' && 'start' in value;
}

/** The nodes right under `node`. */
export function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []));
}

/** Calls `visit` for `node` and everything under it, with the nodes above, nearest last. */
export function walkSyntax(node: SyntaxNode, visit: (node: SyntaxNode, above: readonly SyntaxNode[]) => void): void {
  const step = (current: SyntaxNode, above: readonly SyntaxNode[]): void => {
    visit(current, above);
    const deeper = [...above, current];
    for (const child of childrenOf(current)) step(child, deeper);
  };
  step(node, []);
}

/** The name of an identifier node, else undefined. */
export function identifierName(node: unknown): string | undefined {
  return isNode(node) && node.type === 'Identifier' && typeof node.name === 'string' ? node.name : undefined;
}

/** The text of a string literal (or a template without holes), else undefined. */
export function literalText(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined;
  return undefined;
}

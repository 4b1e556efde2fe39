// What the published packages let others see, as lists, so that a change of them is seen in review.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { identifierName, isNode, literalText, parseSource, type SyntaxNode } from './source-files.ts';
import { workspacePackages } from './workspace-packages.ts';

/** Exports by entry point, such as `@firecrew/sdk` or `@firecrew/sdk/testing`; types are written `type Name`. */
export type ExportLists = Readonly<Record<string, readonly string[]>>;

/** The exports of every published package under `root`, sorted. Throws where an entry point exports by star or by default. */
export function listExports(root: string): ExportLists {
  const entries = workspacePackages(root)
    .filter(({ manifest }) => !manifest.private)
    .flatMap(({ folder, manifest }) =>
      Object.keys(manifest.exports)
        .filter((entry) => entry !== './package.json')
        .map((entry): [string, readonly string[]] => {
          const source = `${folder}/src/${entry === '.' ? 'index' : entry.slice(2)}.ts`;
          return [manifest.name + entry.slice(1), existsSync(join(root, source)) ? exportsOf(root, source) : []];
        }),
    );
  return Object.fromEntries(entries);
}

function exportsOf(root: string, path: string): readonly string[] {
  const { body } = parseSource(root, path).program;
  const names = (Array.isArray(body) ? body.filter(isNode) : []).flatMap((node) => {
    if (node.type === 'ExportAllDeclaration' || node.type === 'ExportDefaultDeclaration')
      throw new Error(`${path} exports by ${node.type}; name what it exports`);
    return node.type === 'ExportNamedDeclaration' ? namesOf(node) : [];
  });
  return names.sort();
}

function namesOf(node: SyntaxNode): readonly string[] {
  const specifiers = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : [];
  const named = specifiers.map((specifier) => {
    const name = identifierName(specifier.exported) ?? literalText(specifier.exported) ?? '';
    return node.exportKind === 'type' || specifier.exportKind === 'type' ? `type ${name}` : name;
  });
  const declared = node.declaration;
  if (!isNode(declared)) return named;
  if (declared.type === 'VariableDeclaration' && Array.isArray(declared.declarations)) {
    return [...named, ...declared.declarations.filter(isNode).map(({ id }) => identifierName(id) ?? '')];
  }
  const name = identifierName(declared.id) ?? '';
  return [...named, declared.type.startsWith('TS') && declared.type !== 'TSEnumDeclaration' ? `type ${name}` : name];
}

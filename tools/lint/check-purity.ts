// Decision packages decide from their arguments alone. The type-check (no Node types) and the boundaries of turbo see foreign globals and
// undeclared packages; this sees what they do not: clock, randomness, locale, environment, state and imports of every kind.
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import {
  childrenOf,
  identifierName,
  isNode,
  listSources,
  literalText,
  parseSource,
  type SourceFile,
  type SyntaxNode,
  walkSyntax,
} from './source-files.ts';
import { workspacePackages } from './workspace-packages.ts';

/** Names that no decision may mention, unless the file itself declares them. */
const FORBIDDEN_NAMES = new Set(
  'globalThis global window self process performance crypto Buffer require module eval Function WebAssembly Intl fetch console setTimeout setInterval setImmediate queueMicrotask WeakRef FinalizationRegistry navigator Temporal'.split(
    ' ',
  ),
);
/** Members of `Date` that depend on their arguments alone. */
const PURE_DATE_MEMBERS = new Set(['UTC']);
/** Methods whose result depends on the locale or the time zone of the machine. */
const LOCAL_METHOD =
  /^(toLocale\w*|localeCompare|[gs]et(Hours|Minutes|Seconds|Milliseconds|Date|Day|Month|FullYear|Year|TimezoneOffset)|toDateString|toTimeString)$/;
/** A package's fake and compliance suite are not decisions. */
const TESTING = /\/src\/testing(\.ts$|\/)/;
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'PropertyDefinition', 'StaticBlock']);

/** Every impurity in the sources of the decision packages under `root`, one sentence each. */
export function checkPurity(root: string): readonly string[] {
  return workspacePackages(root)
    .filter(({ tags }) => tags.includes('decision'))
    .flatMap(({ folder, manifest }) => {
      const declared = new Set(Object.keys(manifest.dependencies).filter((name) => !name.startsWith('@firecrew/')));
      return listSources(root, `${folder}/src`)
        .filter((path) => !TESTING.test(path))
        .flatMap((path) => impuritiesOf(parseSource(root, path), `${folder}/src`, declared));
    });
}

function impuritiesOf(file: SourceFile, sourceFolder: string, declared: ReadonlySet<string>): readonly string[] {
  const bound = boundNames(file.program);
  const findings: string[] = [];
  const found = (node: SyntaxNode, what: string): void => {
    findings.push(`${file.path}:${file.lineAt(node.start)}: ${what}`);
  };
  walkSyntax(file.program, (node, above) => {
    const parent = above.at(-1);
    const source = importSource(node);
    if (source !== undefined) {
      const refusal = refuseImport(source, file.path, sourceFolder, declared);
      if (refusal !== undefined) found(node, refusal);
    }
    if (node.type === 'ImportExpression') found(node, 'a dynamic import');
    if (node.type === 'MetaProperty' && identifierName(node.meta) === 'import') found(node, 'import.meta');
    if (node.type === 'AwaitExpression' && !above.some(({ type }) => FUNCTIONS.has(type)))
      found(node, 'await at the top level of a module');
    if (node.type === 'VariableDeclaration' && node.kind !== 'const' && isModuleLevel(above)) found(node, `module-level ${node.kind}`);
    const member = memberName(node);
    if (member !== undefined && LOCAL_METHOD.test(member)) found(node, `.${member} depends on the machine's locale or time zone`);
    const name = identifierName(node);
    if (name === undefined || !isValueReference(node, parent)) return;
    // A file may have a parameter called `process`; nothing may stand in for the clock or for randomness.
    if (bound.has(name) && name !== 'Date' && name !== 'Math') return;
    const refusal = refuseName(name, node, parent);
    if (refusal !== undefined) found(node, refusal);
  });
  return findings;
}

function refuseImport(source: string, path: string, sourceFolder: string, declared: ReadonlySet<string>): string | undefined {
  if (source.startsWith('.')) {
    const target = normalize(join(dirname(path), source));
    if (!target.startsWith(`${sourceFolder}/`)) return `an import that leaves the sources: ${source}`;
    return TESTING.test(target) ? `an import of test support: ${source}` : undefined;
  }
  if (source.startsWith('node:') || builtinModules.includes(source)) return `an import of a Node module: ${source}`;
  if (source.startsWith('@firecrew/')) return `an import of another package of ours: ${source}`;
  const name = source
    .split('/')
    .slice(0, source.startsWith('@') ? 2 : 1)
    .join('/');
  return declared.has(name) ? undefined : `an import that package.json does not declare: ${source}`;
}

function refuseName(name: string, node: SyntaxNode, parent: SyntaxNode | undefined): string | undefined {
  if (FORBIDDEN_NAMES.has(name)) return `${name} is not an argument`;
  if (name !== 'Date' && name !== 'Math') return undefined;
  const member = parent !== undefined && parent.object === node ? memberName(parent) : undefined;
  if (name === 'Math') return member !== undefined && member !== 'random' ? undefined : 'Math only with a named member other than random';
  if (member !== undefined && PURE_DATE_MEMBERS.has(member)) return undefined;
  if (parent?.type === 'BinaryExpression' && parent.operator === 'instanceof') return undefined;
  const given = parent?.type === 'NewExpression' && parent.callee === node ? parent.arguments : undefined;
  const first: unknown = Array.isArray(given) ? given[0] : undefined;
  return isNode(first) && first.type !== 'SpreadElement'
    ? undefined
    : 'Date only as `new Date(value)` or `Date.UTC(...)`: the time is an argument';
}

/** The name behind `.name` or `['name']`. */
function memberName(node: SyntaxNode): string | undefined {
  if (node.type !== 'MemberExpression') return undefined;
  return node.computed === true ? literalText(node.property) : identifierName(node.property);
}

function importSource(node: SyntaxNode): string | undefined {
  if (node.type === 'TSImportType') return literalText(node.source) ?? literalText(node.argument);
  const kinds = ['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration'];
  return kinds.includes(node.type) ? literalText(node.source) : undefined;
}

function isModuleLevel(above: readonly SyntaxNode[]): boolean {
  return above.every(({ type }) => type === 'Program' || type === 'ExportNamedDeclaration');
}

/** False for names of members and keys, and for names in types. */
function isValueReference(node: SyntaxNode, parent: SyntaxNode | undefined): boolean {
  if (parent === undefined) return true;
  if (parent.type === 'TSTypeQuery') return true;
  if (parent.type.startsWith('TS') && !/^TS(As|Satisfies|NonNull|Instantiation)Expression$/.test(parent.type)) return false;
  if (parent.property === node || parent.key === node) return parent.computed === true || parent.shorthand === true;
  return !['ImportSpecifier', 'ExportSpecifier', 'LabeledStatement', 'BreakStatement', 'ContinueStatement', 'MetaProperty'].includes(
    parent.type,
  );
}

/** Every name that the file declares itself: parameters, variables, functions, classes and imports. */
function boundNames(program: SyntaxNode): ReadonlySet<string> {
  const names = new Set<string>();
  const bind = (target: unknown): void => {
    const name = identifierName(target);
    if (name !== undefined) names.add(name);
    else if (isNode(target)) for (const part of patternParts(target)) bind(part);
  };
  walkSyntax(program, (node) => {
    if (node.type === 'VariableDeclarator' || node.type.startsWith('Function') || node.type.startsWith('Class')) bind(node.id);
    if (Array.isArray(node.params)) for (const param of node.params) bind(param);
    if (node.type === 'CatchClause') bind(node.param);
    if (/^Import(Default|Namespace)?Specifier$/.test(node.type)) bind(node.local);
  });
  return names;
}

function patternParts(pattern: SyntaxNode): readonly unknown[] {
  if (pattern.type === 'AssignmentPattern') return [pattern.left];
  if (pattern.type === 'RestElement') return [pattern.argument];
  if (pattern.type === 'Property') return [pattern.value];
  return pattern.type === 'ObjectPattern' || pattern.type === 'ArrayPattern' ? childrenOf(pattern) : [];
}

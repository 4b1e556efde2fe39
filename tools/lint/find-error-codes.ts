// Every error code that the sources can throw, found in their syntax trees.
import {
  identifierName,
  isNode,
  listSources,
  literalText,
  parseSource,
  type SourceFile,
  type SyntaxNode,
  walkSyntax,
} from './source-files.ts';
import { recordOf, workspacePackages } from './workspace-packages.ts';

/** One code of one package, with what the sources say about it; holes in their sentences are `…`. */
export interface ErrorCode {
  readonly packageName: string;
  readonly code: string;
  readonly message: string | undefined;
  readonly action: string | undefined;
}

type Said = Pick<ErrorCode, 'message' | 'action'>;

/** What was found: the codes, sorted by package and code, and the places whose code cannot be read. */
export interface ErrorCodes {
  readonly codes: readonly ErrorCode[];
  readonly findings: readonly string[];
}

/** A class of errors with a code: the closed list of its codes, where its type is one; `fixed` where who throws it gives no code. */
interface CodedClass {
  readonly codes: readonly string[] | undefined;
  readonly fixed: boolean;
  readonly message?: string | undefined;
}

/** An error whose code comes from elsewhere (off a wire) says so on the line above: `any code: <why>`. */
const ANY_CODE = /^\s*any code: \S.{9,}/;
const CODE = /^[a-z][a-z0-9_]*$/;

/** The error codes of all packages under `root`. */
export function findErrorCodes(root: string): ErrorCodes {
  const found = new Map<string, ErrorCode>();
  const findings: string[] = [];
  for (const { folder, manifest } of workspacePackages(root)) {
    const files = listSources(root, `${folder}/src`).map((path) => parseSource(root, path));
    const scope = packageScope(files);
    const add = (code: string, said: Said, place: string): void => {
      if (!CODE.test(code)) findings.push(`${place}: the code ${code} is not snake_case`);
      const key = `${manifest.name} ${code}`;
      const before = found.get(key);
      found.set(key, { packageName: manifest.name, code, message: before?.message ?? said.message, action: before?.action ?? said.action });
    };
    for (const [name, { codes, message }] of scope.classes) {
      for (const code of codes ?? []) add(code, { message, action: undefined }, `${folder}: ${name}`);
    }
    for (const file of files) findings.push(...readThrows(file, scope, add));
  }
  const codes = [...found.values()].sort((a, b) => compare(`${a.packageName} ${a.code}`, `${b.packageName} ${b.code}`));
  return { codes, findings };
}

interface PackageScope {
  readonly classes: ReadonlyMap<string, CodedClass>;
  readonly unions: ReadonlyMap<string, readonly string[]>;
  readonly texts: ReadonlyMap<string, string>;
}

function packageScope(files: readonly SourceFile[]): PackageScope {
  const lists = new Map<string, readonly string[]>();
  const texts = new Map<string, string>();
  const aliases = new Map<string, SyntaxNode>();
  const classes = new Map<string, CodedClass>([['CodedError', { codes: undefined, fixed: false }]]);
  const pending: SyntaxNode[] = [];
  for (const file of files) {
    walkSyntax(file.program, (node) => {
      const name = identifierName(node.id);
      if (name === undefined) return;
      if (node.type === 'VariableDeclarator') readConstant(name, node.init, lists, texts);
      if (node.type === 'TSTypeAliasDeclaration' && isNode(node.typeAnnotation)) aliases.set(name, node.typeAnnotation);
      if (node.type === 'ClassDeclaration' && node.superClass !== null) pending.push(node);
    });
  }
  const unions = new Map<string, readonly string[]>();
  for (const [name, type] of aliases) {
    const members = membersOf(type, lists, aliases);
    if (members !== undefined) unions.set(name, members);
  }
  for (const node of pending) {
    const name = identifierName(node.id);
    const coded = codedClass(node, lists, aliases, classes);
    if (name !== undefined && coded !== undefined && name !== 'CodedError') classes.set(name, coded);
  }
  return { classes, unions, texts };
}

function readConstant(name: string, init: unknown, lists: Map<string, readonly string[]>, texts: Map<string, string>): void {
  const text = joinedText(init);
  // Only constants: `message` is a name in many functions.
  if (text !== undefined && /^[A-Z][A-Z0-9_]*$/.test(name)) texts.set(name, text);
  const array = isNode(init) && init.type.startsWith('TS') ? init.expression : init;
  if (!isNode(array)) return;
  if (array.type === 'ArrayExpression' && Array.isArray(array.elements)) {
    const members = array.elements.map(literalText).filter((member) => member !== undefined);
    if (members.length > 0) lists.set(name, members);
  }
}

/** The literal members of a type: `'a' | 'b'`, `(typeof LIST)[number]`, or the name of such a type. */
function membersOf(
  type: SyntaxNode,
  lists: ReadonlyMap<string, readonly string[]>,
  aliases: ReadonlyMap<string, SyntaxNode>,
): readonly string[] | undefined {
  if (type.type === 'TSLiteralType') {
    const text = literalText(type.literal);
    return text === undefined ? undefined : [text];
  }
  if (type.type === 'TSUnionType' && Array.isArray(type.types)) {
    const parts = type.types.filter(isNode).map((part) => membersOf(part, lists, aliases));
    return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
  }
  if (type.type === 'TSParenthesizedType' && isNode(type.typeAnnotation)) return membersOf(type.typeAnnotation, lists, aliases);
  if (type.type === 'TSIndexedAccessType' && isNode(type.objectType)) return membersOf(type.objectType, lists, aliases);
  if (type.type === 'TSTypeQuery') return lists.get(identifierName(type.exprName) ?? '');
  if (type.type === 'TSTypeReference') {
    const alias = aliases.get(identifierName(type.typeName) ?? '');
    return alias === undefined || alias === type ? undefined : membersOf(alias, lists, aliases);
  }
  return undefined;
}

function codedClass(
  node: SyntaxNode,
  lists: ReadonlyMap<string, readonly string[]>,
  aliases: ReadonlyMap<string, SyntaxNode>,
  classes: ReadonlyMap<string, CodedClass>,
): CodedClass | undefined {
  const parent = identifierName(node.superClass);
  const body = isNode(node.body) ? node.body.body : undefined;
  if (parent !== 'Error' && !classes.has(parent ?? '')) return undefined;
  for (const member of Array.isArray(body) ? body.filter(isNode) : []) {
    if (member.type !== 'PropertyDefinition' || identifierName(member.key) !== 'code') continue;
    const fixed = literalText(isNode(member.value) && member.value.type.startsWith('TS') ? member.value.expression : member.value);
    if (fixed !== undefined) return { codes: [fixed], fixed: true };
    const type = isNode(member.typeAnnotation) ? member.typeAnnotation.typeAnnotation : undefined;
    if (!isNode(type)) return { codes: undefined, fixed: false };
    return { codes: membersOf(type, lists, aliases), fixed: false };
  }
  return parent === 'Error' ? undefined : fixedBySuper(node);
}

/** What a class gives to the constructor of its coded parent: `super('link_lost', ...)`. */
function fixedBySuper(node: SyntaxNode): CodedClass {
  let found: CodedClass = { codes: undefined, fixed: false };
  walkSyntax(node, (call) => {
    if (call.type !== 'CallExpression' || !isNode(call.callee) || call.callee.type !== 'Super' || !Array.isArray(call.arguments)) return;
    const codes = codesOf(call.arguments[0]);
    if (codes !== undefined) found = { codes, fixed: true, message: joinedText(call.arguments[1]) };
  });
  return found;
}

function readThrows(file: SourceFile, scope: PackageScope, add: (code: string, said: Said, place: string) => void): readonly string[] {
  const findings: string[] = [];
  walkSyntax(file.program, (node) => {
    const name = node.type === 'NewExpression' ? identifierName(node.callee) : undefined;
    const coded = name === undefined ? undefined : scope.classes.get(name);
    if (coded === undefined || coded.fixed || !Array.isArray(node.arguments)) return;
    const line = file.lineAt(node.start);
    const [first] = node.arguments;
    // Some constructors take one object: `new ApiError({ code, message, action })`.
    const codeNode = propertyOf(first, 'code') ?? first;
    const codes = codesOf(codeNode) ?? unionOfBinding(file, codeNode, scope);
    const action = node.arguments.map((argument) => actionOf(argument, scope.texts)).find((text) => text !== undefined);
    const message = [propertyOf(first, 'message'), ...node.arguments.slice(1)].map(joinedText).find((text) => text !== undefined);
    for (const code of codes ?? []) add(code, { message, action }, `${file.path}:${line}`);
    const explained = file.comments.some(
      ({ value, end }) => ANY_CODE.test(value) && line - file.lineAt(end) <= 1 && line >= file.lineAt(end),
    );
    if (codes === undefined && coded.codes === undefined && !explained) {
      findings.push(
        `${file.path}:${line}: the code of this error cannot be read: use a literal, a closed type, or say above it: // any code: <why>`,
      );
    }
  });
  return findings;
}

/** The codes of a literal, or of a choice between literals. */
function codesOf(node: unknown): readonly string[] | undefined {
  const text = literalText(node);
  if (text !== undefined) return [text];
  if (!isNode(node) || node.type !== 'ConditionalExpression') return undefined;
  const [yes, no] = [codesOf(node.consequent), codesOf(node.alternate)];
  return yes !== undefined && no !== undefined ? [...yes, ...no] : undefined;
}

/** The codes of a name that the file binds to literals, or with a closed type of the package (a parameter `code: FetchErrorCode`). */
function unionOfBinding(file: SourceFile, node: unknown, scope: PackageScope): readonly string[] | undefined {
  const name = identifierName(node);
  if (name === undefined) return undefined;
  const codes: string[] = [];
  walkSyntax(file.program, (binding) => {
    if (binding.type === 'VariableDeclarator' && identifierName(binding.id) === name) codes.push(...(codesOf(binding.init) ?? []));
    if (identifierName(binding) !== name || !isNode(binding.typeAnnotation)) return;
    const type = binding.typeAnnotation.typeAnnotation;
    if (isNode(type)) codes.push(...(scope.unions.get(identifierName(type.typeName) ?? '') ?? []));
  });
  return codes.length > 0 ? codes : undefined;
}

function actionOf(argument: unknown, texts: ReadonlyMap<string, string>): string | undefined {
  const action = propertyOf(argument, 'action');
  return joinedText(action) ?? texts.get(identifierName(action) ?? '');
}

/** The value of a property of an object literal. */
function propertyOf(object: unknown, key: string): unknown {
  if (!isNode(object) || object.type !== 'ObjectExpression' || !Array.isArray(object.properties)) return undefined;
  return object.properties.filter(isNode).find((property) => identifierName(property.key) === key)?.value;
}

/** A string in so many words: a literal, a template with `…` for its holes, or such joined by `+`. */
function joinedText(node: unknown): string | undefined {
  if (isNode(node) && node.type === 'TemplateLiteral' && Array.isArray(node.quasis)) {
    return node.quasis.map((quasi) => String(recordOf(recordOf(quasi).value).cooked)).join('…');
  }
  if (!isNode(node) || node.type !== 'BinaryExpression') return literalText(node);
  const [left, right] = [joinedText(node.left), joinedText(node.right)];
  return left !== undefined && right !== undefined && node.operator === '+' ? left + right : undefined;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

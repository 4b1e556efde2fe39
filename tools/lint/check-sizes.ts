// Files and functions stay small: past the limit only with a comment `size: <why>` at the top of the file or right above the function.
import { listSources, parseSource, type SourceFile, type SyntaxNode, walkSyntax } from './source-files.ts';
import { workspacePackages } from './workspace-packages.ts';

/** Limits in lines. */
export interface SizeLimits {
  readonly file: number;
  readonly function: number;
}

export const SIZE_LIMITS: SizeLimits = { file: 300, function: 80 };
/** Adapters and apps talk to the outside, which takes more words. */
export const WIDE_SIZE_LIMITS: SizeLimits = { file: 400, function: 110 };
/** A test's `describe` is one function: only the file counts. */
export const TEST_SIZE_LIMITS: SizeLimits = { file: 400, function: Number.POSITIVE_INFINITY };

const REASON = /^\s*size: \S.{9,}/;
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);
/** A reason for the whole file stands within its first lines. */
const FILE_REASON_LINES = 10;

/** Every file and function past its limit without a reason, one sentence each. */
export function checkSizes(root: string): readonly string[] {
  const findings: string[] = [];
  for (const { folder, tags } of workspacePackages(root)) {
    const wide = tags.includes('adapter') || tags.includes('app');
    for (const path of listSources(root, folder)) {
      const limits = path.startsWith(`${folder}/test/`) ? TEST_SIZE_LIMITS : wide ? WIDE_SIZE_LIMITS : SIZE_LIMITS;
      findings.push(...sizesOf(parseSource(root, path), limits));
    }
  }
  for (const folder of ['tools', 'bench', 'examples']) {
    for (const path of listSources(root, folder)) findings.push(...sizesOf(parseSource(root, path), SIZE_LIMITS));
  }
  for (const path of listSources(root, 'tests')) findings.push(...sizesOf(parseSource(root, path), TEST_SIZE_LIMITS));
  return findings;
}

function sizesOf(file: SourceFile, limits: SizeLimits): readonly string[] {
  const findings: string[] = [];
  const lines = file.text.trimEnd().split('\n').length;
  if (lines > limits.file && !hasReason(file, 1, FILE_REASON_LINES)) {
    findings.push(`${file.path}: ${lines} lines; the limit is ${limits.file}. Split it, or say why at its top: // size: <why>`);
  }
  walkSyntax(file.program, (node, above) => {
    if (!FUNCTIONS.has(node.type)) return;
    const [first, last] = [file.lineAt(node.start), file.lineAt(node.end)];
    const length = last - first + 1;
    if (length <= limits.function) return;
    const outer = file.lineAt(statementOf(node, above).start);
    if (hasReason(file, outer - 1, outer)) return;
    findings.push(
      `${file.path}:${first}: a function of ${length} lines; the limit is ${limits.function}. Split it, or say why: // size: <why>`,
    );
  });
  return findings;
}

/** What stands at the start of the line above which a reason is written. */
function statementOf(node: SyntaxNode, above: readonly SyntaxNode[]): SyntaxNode {
  const holder = above.findLast(({ type }) => type.endsWith('Declaration') || type.endsWith('Statement') || type === 'MethodDefinition');
  return holder === undefined || holder.type === 'BlockStatement' ? node : holder;
}

function hasReason(file: SourceFile, from: number, to: number): boolean {
  return file.comments.some(({ value, start, end }) => REASON.test(value) && file.lineAt(end) >= from && file.lineAt(start) <= to);
}

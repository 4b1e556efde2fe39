import { parseSync } from 'oxc-parser';

/** One small change to a source text. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** What stood there. */
  readonly was: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '+': '-',
  '-': '+',
  '*': '/',
  '&&': '||',
  '||': '&&',
  '??': '&&',
};

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' &&
  value !== null &&
  typeof Reflect.get(value, 'type') === 'string' &&
  typeof Reflect.get(value, 'start') === 'number';

/** Every simple mutant of a TypeScript source: operators, conditions, numbers and truth values. Types are left alone. */
export function findMutants(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`);
  const found: Mutant[] = [];
  const replace = (start: number, end: number, text: string) => found.push({ start, end, text, was: source.slice(start, end) });
  const visit = (node: Node): void => {
    if (
      node.type.startsWith('TS') &&
      node.type !== 'TSAsExpression' &&
      node.type !== 'TSNonNullExpression' &&
      node.type !== 'TSSatisfiesExpression'
    )
      return;
    mutateNode(node, source, replace);
    for (const value of Object.values(node)) for (const child of [value].flat()) if (isNode(child)) visit(child);
  };
  // The parser's own node types have no common index; only `type` and children are read.
  visit(program as unknown as Node);
  return found.toSorted((a, b) => a.start - b.start);
}

function mutateNode(node: Node, source: string, replace: (start: number, end: number, text: string) => void): void {
  const { left, right, operator, test, argument, value } = node;
  if ((node.type === 'BinaryExpression' || node.type === 'LogicalExpression') && isNode(left) && isNode(right)) {
    const other = OPERATORS[String(operator)];
    const at = source.indexOf(String(operator), left.end);
    // A sum of texts is no arithmetic.
    const joinsText = operator === '+' && [left, right].some((side) => side.type === 'TemplateLiteral' || typeof side.value === 'string');
    if (other !== undefined && at !== -1 && at < right.start && !joinsText) replace(at, at + String(operator).length, other);
  }
  if ((node.type === 'IfStatement' || node.type === 'ConditionalExpression') && isNode(test)) {
    replace(test.start, test.end, 'true');
    replace(test.start, test.end, 'false');
  }
  if (node.type === 'UnaryExpression' && operator === '!' && isNode(argument)) replace(node.start, argument.start, '');
  if (node.type === 'Literal' && typeof value === 'boolean') replace(node.start, node.end, String(!value));
  if (node.type === 'Literal' && typeof value === 'number') replace(node.start, node.end, String(value + 1));
}

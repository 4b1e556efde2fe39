// `docs/errors.md`: every error code with what to do, the codes from the sources, the words by hand.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ErrorCode, findErrorCodes } from './find-error-codes.ts';
import { workspacePackages } from './workspace-packages.ts';

export const ERROR_DOCUMENT = 'docs/errors.md';

const HEAD = `# Errors

Every error of Firecrew carries a code, says what happened to which id, and what to do next. This is the list of all codes, by the package that
throws them (\`…\` stands for a value). \`node tools/list-error-codes.ts --write\` adds the rows that are missing, with the words of the sources, and
removes those that nothing throws; words that are there stay as they are.
Why an attempt ended is no error: its cause is one of [these](operating.md#why-an-attempt-ended).
`;
const HEADING = /^## `(?<name>[^`]+)`$/;
const ROW = /^\| `(?<code>[^`]+)` \|(?<said>(?:[^|\\]|\\.)*)\|(?<text>(?:[^|\\]|\\.)*)\|$/;

/** What the document and the sources disagree about, one sentence each. */
export function checkErrorDocument(root: string): readonly string[] {
  const { codes, findings } = findErrorCodes(root);
  const texts = readTexts(root);
  const known = new Set(codes.map(keyOf));
  const write = 'run: node tools/list-error-codes.ts --write';
  return [
    ...findings,
    ...codes
      .filter((code) => !texts.has(keyOf(code)))
      .map(({ code, packageName }) => `${ERROR_DOCUMENT} lacks ${code} of ${packageName}; ${write}`),
    ...codes
      .filter((code) => texts.get(keyOf(code))?.text === '')
      .map(({ code, packageName }) => `${ERROR_DOCUMENT} does not say what to do about ${code} of ${packageName}`),
    ...[...texts.keys()].filter((key) => !known.has(key)).map((key) => `${ERROR_DOCUMENT} lists ${key}, which nothing throws; ${write}`),
  ];
}

/** The document as the sources want it, with the words that are there already; new rows begin with what the sources or the README say. */
export function renderErrorDocument(root: string): string {
  const { codes } = findErrorCodes(root);
  const texts = readTexts(root);
  const sections = workspacePackages(root).flatMap(({ folder, manifest }) => {
    const own = codes.filter(({ packageName }) => packageName === manifest.name);
    if (own.length === 0) return [];
    const rows = own.map((one) => {
      const known = texts.get(keyOf(one));
      const text = known?.text || cell(one.action) || readmeText(root, folder, one.code);
      return `| \`${one.code}\` | ${known?.said || cell(one.message)} | ${text} |`;
    });
    return [`\n## \`${manifest.name}\`\n\n| code | what happened | what to do |\n| --- | --- | --- |\n${rows.join('\n')}\n`];
  });
  return HEAD + sections.join('');
}

function cell(text: string | undefined): string {
  return (text ?? '').replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function keyOf({ packageName, code }: Pick<ErrorCode, 'packageName' | 'code'>): string {
  return `${packageName} ${code}`;
}

/** The words of one row. */
interface Words {
  readonly said: string;
  readonly text: string;
}

function readTexts(root: string): ReadonlyMap<string, Words> {
  const texts = new Map<string, Words>();
  const path = join(root, ERROR_DOCUMENT);
  let packageName = '';
  for (const line of existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []) {
    packageName = HEADING.exec(line)?.groups?.name ?? packageName;
    const { code, said, text } = ROW.exec(line)?.groups ?? {};
    if (code !== undefined) texts.set(keyOf({ packageName, code }), { said: (said ?? '').trim(), text: (text ?? '').trim() });
  }
  return texts;
}

/** The last cell of the README's row about `code`. */
function readmeText(root: string, folder: string, code: string): string {
  const path = join(root, folder, 'README.md');
  const row = existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .find((line) => line.startsWith(`| \`${code}\` |`))
    : undefined;
  return row === undefined ? '' : (row.split('|').at(-2)?.trim() ?? '');
}

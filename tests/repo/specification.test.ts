// The documents say what is there: links and named tests, numbers, constants and settings.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeConfigSchema } from '../../apps/node-agent/src/agent/config.ts';
import { serverConfigSchema } from '../../apps/server/src/config.ts';
import { ROOT } from './small-workspace.ts';

const DOCUMENTS = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

interface Link {
  readonly text: string;
  /** Path relative to the repository; empty for a place in the same document. */
  readonly path: string;
  readonly anchor: string;
}

/** The links of a document that lead into this repository. */
function linksOf(document: string, text: string): readonly Link[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '');
  return [...prose.matchAll(/(?<!!)\[((?:[^[\]]|\[[^[\]]*\])+)\]\(([^()\s]+)\)/g)].flatMap(([, label = '', target = '']) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = '', anchor = ''] = target.split('#');
    return [{ text: label.replace(/\s+/g, ' '), path: path === '' ? '' : relative(ROOT, join(ROOT, dirname(document), path)), anchor }];
  });
}

function anchorsOf(text: string): readonly string[] {
  return [...text.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

/** What is wrong with the links of a document: a file, a heading or a named test that is not there. */
function brokenLinks(document: string, text: string): readonly string[] {
  return linksOf(document, text).flatMap(({ text: label, path, anchor }) => {
    const file = path === '' ? document : path;
    if (path !== '' && !existsSync(join(ROOT, path))) return [`${document}: nothing is at ${path}`];
    if (anchor !== '' && file.endsWith('.md') && !anchorsOf(path === '' ? text : readFileSync(join(ROOT, file), 'utf8')).includes(anchor))
      return [`${document}: ${file} has no heading #${anchor}`];
    const isTest = /\.test\.ts$|\/src\/testing\/[^/]+\.ts$/.test(file) && label.replaceAll('`', '') !== file;
    if (isTest && !readFileSync(join(ROOT, file), 'utf8').includes(label)) return [`${document}: ${file} has no test "${label}"`];
    return [];
  });
}

const SOURCE_NAMES = ['apps', 'packages'].flatMap((place) =>
  readdirSync(join(ROOT, place)).flatMap((name) => {
    const folder = join(ROOT, place, name, 'src');
    return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => `/${path}`) : [];
  }),
);

/** Paths of this repository and names of sources that a document writes as code, and that are not there. */
function missingPaths(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`([^`\s]+)`/g)].map(([, quote = '']) => quote);
  return quoted.filter((path) => {
    if (/^(apps|packages|tests|tools|docs|bin)\/[\w./-]+$/.test(path))
      return !/\/(dist|bundle)\//.test(path) && !existsSync(join(ROOT, path));
    return /^[a-z-]+(\/[a-z-]+)*\.ts$/.test(path) && !SOURCE_NAMES.some((name) => name.endsWith(`/${path}`));
  });
}

/** The cells of each row of a document whose first cell matches. */
function rowsOf(text: string, first: RegExp): readonly (readonly string[])[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(1, line.lastIndexOf('|'))
        .split('|')
        .map((cell) => cell.trim()),
    )
    .filter(([cell]) => cell !== undefined && first.test(cell));
}

const specification = readFileSync(join(ROOT, 'docs', 'specification.md'), 'utf8');

describe('links of the documents', () => {
  it.each(DOCUMENTS)('%s: all lead to what is there', (document) => {
    expect(brokenLinks(document, readFileSync(join(ROOT, document), 'utf8'))).toEqual([]);
  });

  it('are found broken when a file, a heading or a test is not there', () => {
    const here = 'docs/x.md';
    const test = '../tests/repo/specification.test.ts';
    expect(brokenLinks(here, `[a](no-such.md) [b](README.md#no-such) [${'no such'} test](${test}) [c](#here)\n\n# There\n`)).toHaveLength(
      4,
    );
    expect(brokenLinks(here, `[a](README.md) [all lead to](${test}) [c](#here-too)\n\n# Here, too\n`)).toEqual([]);
  });
});

describe('paths in the documents', () => {
  it.each(DOCUMENTS)('%s: name what is there', (document) => {
    expect(missingPaths(readFileSync(join(ROOT, document), 'utf8'))).toEqual([]);
  });

  it('are found missing', () => {
    expect(missingPaths('`apps/none/src/x.ts` and `no-such-file.ts`, not `decide-round.ts` or `packages/base`')).toEqual([
      'apps/none/src/x.ts',
      'no-such-file.ts',
    ]);
  });
});

describe('the specification', () => {
  const promises = rowsOf(specification, /^S-/);

  it('gives each number once, and none out of form', () => {
    const numbers = promises.map(([number]) => number ?? '');
    expect(numbers.filter((number) => !/^S-\d{3}$/.test(number))).toEqual([]);
    expect(numbers.length).toBeGreaterThan(80);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('names a test for each promise, or says that none shows it yet', () => {
    const bare = promises.filter((cells) => cells.length !== 3 || !(cells[2] === 'pending' || /\]\(\.\.\/\S+\.ts\)$/.test(cells[2] ?? '')));
    expect(bare).toEqual([]);
  });
});

/** The value of an exported constant: a number, or a product of numbers. */
function constantOf(source: string, name: string): number | undefined {
  const expression = new RegExp(`export const ${name}\\b[^=]*= ([^;]+);`).exec(source)?.[1];
  if (expression === undefined || !/^[\d_.]+( \* [\d_.]+)*$/.test(expression)) return undefined;
  return expression.split(' * ').reduce((product, factor) => product * Number(factor.replaceAll('_', '')), 1);
}

describe('the limits have the values that are written', () => {
  const limits = rowsOf(specification, /^`[A-Z][A-Z0-9_]*`$/);

  it('are listed', () => {
    expect(limits.length).toBeGreaterThan(60);
  });

  it.each(limits.map(([name = '', value = '', source = '']) => [name.replaceAll('`', ''), value, source] as const))(
    '%s is %s',
    (name, value, source) => {
      const path = /\]\(\.\.\/(\S+)\)$/.exec(source)?.[1] ?? '';
      expect(constantOf(readFileSync(join(ROOT, path), 'utf8'), name)).toBe(Number(value.replaceAll(',', '')));
    },
  );

  it('are read from products and refused from anything else', () => {
    expect(constantOf('export const A_MS = 2 * 1_000;', 'A_MS')).toBe(2000);
    expect(constantOf('export const A_MS = B_MS;', 'A_MS')).toBeUndefined();
    expect(constantOf('export const A_MS_MAX = 1;', 'A_MS')).toBeUndefined();
  });
});

/** The settings of a configuration with their values, by their path. */
function flatten(value: unknown, path = ''): readonly (readonly [string, string])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path === '' ? key : `${path}.${key}`));
}

/** The settings that a section of the operating document lists, with the default that is written. */
function documentedSettings(heading: string): Map<string, string> {
  const text = readFileSync(join(ROOT, 'docs', 'operating.md'), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`)).split(/\n## /)[1] ?? '';
  return new Map(
    rowsOf(section, /^`[a-z][A-Za-z.]*`$/).map(([name = '', value = '']) => [name.replaceAll('`', ''), value.replaceAll('`', '')]),
  );
}

const SERVER = {
  home: '/h/server',
  homeId: 'x',
  serverFile: '/h/run/server.json',
  listen: { host: '127.0.0.1', port: 0 },
  database: { connectionString: 'postgres://h/d' },
  operatorToken: 'x'.repeat(32),
  localNode: null,
};
const NODE = { home: '/h/node', serverFile: '/h/run/server.json', nodeId: 'nod_0123456789abcdef', keyFile: '/h/key', callerPath: '/bin' };

describe('the settings', () => {
  it.each([
    ['Server configuration', serverConfigSchema, SERVER],
    ['Node agent configuration', nodeConfigSchema, NODE],
  ] as const)('%s lists each, with its default', (heading, schema, required) => {
    const documented = documentedSettings(heading);
    const names = Object.keys(schema.shape);
    expect([...new Set([...documented.keys()].map((name) => name.split('.')[0]))].sort()).toEqual([...names].sort());
    const given = new Set(Object.keys(required));
    const defaults = flatten(schema.parse(required)).filter(([path]) => !given.has(path.split('.')[0] ?? ''));
    expect(defaults.map(([path]) => [path, documented.get(path)])).toEqual(defaults.map(([path, value]) => [path, value]));
  });
});

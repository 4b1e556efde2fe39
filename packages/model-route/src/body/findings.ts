import type { ModelFeature } from '../formats.ts';

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** Something in a body that is not on the closed list: a feature that an operator may name, or a field that nobody knows. */
export interface Finding {
  readonly feature: ModelFeature | 'unknown';
  /** Where it is, in names of ours alone: a guest's own text never enters an audit line. */
  readonly at: string;
}

/** Findings of one body that are kept. */
const FINDINGS_MAX = 50;

/** Collects what a body asks for beyond an answer. */
export class Findings {
  readonly all: Finding[] = [];

  add(feature: Finding['feature'], at: string): void {
    if (this.all.length < FINDINGS_MAX && !this.all.some((item) => item.feature === feature && item.at === at))
      this.all.push({ feature, at });
  }
}

/** The value as an object, or undefined. */
export function objectOf(value: unknown): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** The items of a list; a single object counts as a list of one, since some providers read it so. */
export function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === undefined || value === null ? [] : [value];
}

/** One spelling of a field: servers differ in what they take for the same name. */
export function foldName(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase();
}

/** True for what asks for nothing: absent, null, false, or empty. */
export function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return true;
  return Array.isArray(value) && value.length === 0;
}

/** The name of a field where it can be shown. */
export function shownName(name: string): string {
  return /^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(name) ? name : '(a name that cannot be shown)';
}

/** How one field of an object is judged: `ok` passes unread, a feature is found where the field asks for anything, a function reads on. */
export type FieldRule = 'ok' | Finding['feature'] | ((value: unknown, at: string) => void);

/**
 * Judges the fields of an object by a closed list. A known field in another spelling (`Tools`, `google_search`) is judged as the known
 * one where `folds`, else it is unknown: the server must read no other field than was judged.
 */
export function checkFields(
  object: JsonObject,
  at: string,
  rules: ReadonlyMap<string, FieldRule>,
  findings: Findings,
  folds = false,
): void {
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(object)) {
    const folded = foldName(name);
    const rule = folds ? rules.get(folded) : rules.get(name);
    const place = `${at}${at === '' ? '' : '.'}${shownName(name)}`;
    if (rule === undefined || seen.has(folded)) findings.add('unknown', place);
    else if (typeof rule === 'function') rule(value, place);
    else if (rule !== 'ok' && !isNothing(value)) findings.add(rule, place);
    seen.add(folded);
  }
}

/** Rules from a text of names that pass, and others. */
export function rulesOf(names: string, others: Readonly<Record<string, FieldRule>> = {}, folds = false): ReadonlyMap<string, FieldRule> {
  const key = (name: string) => (folds ? foldName(name) : name);
  const passing = names.split(/\s+/).filter((name) => name !== '');
  return new Map<string, FieldRule>([
    ...passing.map((name) => [key(name), 'ok'] as const),
    ...Object.entries(others).map(([name, rule]) => [key(name), rule] as const),
  ]);
}

const ADDRESS_NAMES = /^(?:.*url|.*uri|href)$/;
const FILE_NAMES = /^(?:fileid|fileids|vectorstoreids|cachedcontent)$/;
/** What a string that stands for data looks like; everything else in an address field is an address. */
const DATA_URL = /^data:[A-Za-z0-9.+/-]{1,100}(?:;[A-Za-z0-9.=+-]{1,60}){0,4},/;

/** True for an address that carries its data itself. */
export function isDataUrl(value: unknown): boolean {
  return typeof value === 'string' && DATA_URL.test(value);
}

/** Fields whose content is the agent's own data and is never read as a request. */
const OPAQUE = new Set([
  'input',
  'arguments',
  'inputschema',
  'parameters',
  'schema',
  'jsonschema',
  'args',
  'response',
  'metadata',
  'output',
  'parametersjsonschema',
]);

/** Finds addresses and files anywhere in a part of a body, whatever its kind; `opaque` data of tools is not looked into. */
export function findReferences(value: unknown, at: string, findings: Findings): void {
  if (Array.isArray(value)) {
    for (const item of value) findReferences(item, at, findings);
    return;
  }
  const object = objectOf(value);
  if (object === undefined) return;
  for (const [name, part] of Object.entries(object)) {
    const folded = foldName(name);
    if (typeof part === 'string' && part !== '') {
      if (ADDRESS_NAMES.test(folded) && !isDataUrl(part)) findings.add('url_sources', `${at}.${shownName(name)}`);
    }
    if (FILE_NAMES.test(folded) && !isNothing(part)) findings.add('files', `${at}.${shownName(name)}`);
    if (!OPAQUE.has(folded)) findReferences(part, `${at}.${shownName(name)}`, findings);
  }
}

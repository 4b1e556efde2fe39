/** What templates of an issuer file may name. */
export const PLACEHOLDERS = ['seatId', 'role', 'workspace', 'workspaceId', 'name', 'keyId', 'successor', 'requestId'] as const;
/** One member of {@link PLACEHOLDERS}. */
export type Placeholder = (typeof PLACEHOLDERS)[number];
/** What is put in; what is missing is left out. */
export type TemplateValues = Readonly<Partial<Record<Placeholder, string>>>;

type Json = unknown;
const PLACEHOLDER = /\{([A-Za-z]+)\}/g;

/** All placeholders of a template, in texts at any depth. */
export function placeholdersOf(template: Json): string[] {
  if (typeof template === 'string') return [...template.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '');
  if (Array.isArray(template)) return template.flatMap(placeholdersOf);
  return typeof template === 'object' && template !== null ? Object.values(template).flatMap(placeholdersOf) : [];
}

/** A text with its values. */
export function fillText(template: string, values: TemplateValues, encode: (value: string) => string = (value) => value): string {
  return template.replace(PLACEHOLDER, (_all, name: string) => encode(isPlaceholder(name) ? (values[name] ?? '') : ''));
}

/** A JSON body with its values, which stay texts whatever they hold. A member that is one placeholder without a value is left out. */
export function fillBody(template: Json, values: TemplateValues): Json {
  if (typeof template === 'string') return fillText(template, values);
  if (Array.isArray(template)) return template.map((part) => fillBody(part, values));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(
    Object.entries(template).flatMap(([name, part]) => (isMissing(part, values) ? [] : [[name, fillBody(part, values)]])),
  );
}

/**
 * The URL of a call below `base`; each value is one part of the path or the query, whatever it holds. Undefined where it would lead elsewhere,
 * as a value of dots would.
 */
export function fillUrl(base: string, path: string, values: TemplateValues): URL | undefined {
  const root = base.replace(/\/+$/, '');
  const wanted = `${root}${fillText(path, values, encodeURIComponent)}`;
  if (!URL.canParse(wanted)) return undefined;
  const url = new URL(wanted);
  const [asWritten = ''] = wanted.slice(new URL(base).origin.length).split('?');
  return url.origin === new URL(base).origin && wanted.startsWith(new URL(base).origin) && url.pathname === asWritten ? url : undefined;
}

function isMissing(part: Json, values: TemplateValues): boolean {
  const name = typeof part === 'string' ? /^\{([A-Za-z]+)\}$/.exec(part)?.[1] : undefined;
  return name !== undefined && isPlaceholder(name) && values[name] === undefined;
}

function isPlaceholder(name: string): name is Placeholder {
  return PLACEHOLDERS.some((known) => known === name);
}

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A schema of the published description, as far as it is used there. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
}

interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly required?: boolean; readonly schema?: Schema }[];
}

/** Definitions that the program leaves open, though it closes all others. */
const OPEN = new Set(['MmdsContentsObject', 'Metrics', 'TokenBucket', 'NetworkOverride', 'VsockOverride', 'BalloonStartCmd']);
/** The file calls it required, and the program does not ask for it. */
const NOT_REQUIRED = new Set(['Drive.is_read_only']);

/** The published description of the API, as a program of one version understands it: closed objects, and the fields of that version. */
export class ApiDescription {
  readonly #description: Description;

  constructor(file: string, minor: number) {
    const text = readFileSync(file, 'utf8');
    // Tests that start many simulators turn the file into JSON first, which is read faster.
    const description = (file.endsWith('.json') ? JSON.parse(text) : parse(text)) as Description;
    const { Drive, SerialDevice } = description.definitions;
    // cast: JSON of ours, changed before anybody reads it
    const fields = (schema: Schema | undefined) => schema?.properties as Record<string, Schema>;
    if (minor < 16) delete fields(SerialDevice).rate_limiter;
    if (minor >= 17) fields(Drive).discard = { type: 'boolean' };
    this.#description = description;
  }

  /** Whether there is such an operation, and the schema of its body. */
  operation(method: string, path: string): { readonly body: Schema | undefined } | undefined {
    const template = Object.keys(this.#description.paths).find((one) => matches(one, path));
    const operation = template === undefined ? undefined : this.#description.paths[template]?.[method.toLowerCase()];
    if (operation === undefined) return undefined;
    return { body: operation.parameters?.find((parameter) => parameter.in === 'body')?.schema };
  }

  /** What the program says of a body that is not of the schema; undefined for one that is. */
  fault(value: unknown, schema: Schema): string | undefined {
    const { name, schema: found } = this.#resolve(schema);
    if (found.enum !== undefined && !found.enum.includes(value)) {
      return `unknown variant \`${String(value)}\`, expected ${found.enum.map((one) => `\`${String(one)}\``).join(' or ')}`;
    }
    switch (found.type) {
      case 'object':
        return this.#objectFault(value, found, name);
      case 'array':
        return Array.isArray(value)
          ? value.map((item) => this.fault(item, found.items ?? {})).find(Boolean)
          : typeFault(value, 'a sequence');
      case 'integer':
        return Number.isInteger(value) && Number(value) >= 0 ? undefined : typeFault(value, 'u64');
      case 'boolean':
        return typeof value === 'boolean' ? undefined : typeFault(value, 'a boolean');
      case 'string':
        return typeof value === 'string' ? undefined : typeFault(value, 'a string');
      default:
        return undefined;
    }
  }

  #objectFault(value: unknown, schema: Schema, name: string): string | undefined {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return typeFault(value, `struct ${name}`);
    const properties = schema.properties ?? {};
    const missing = schema.required?.find((field) => !Object.hasOwn(value, field) && !NOT_REQUIRED.has(`${name}.${field}`));
    if (missing !== undefined) return `missing field \`${missing}\``;
    for (const [field, part] of Object.entries(value)) {
      const property = properties[field];
      if (property === undefined) {
        if (OPEN.has(name) || schema.additionalProperties === true) continue;
        return `unknown field \`${field}\`, expected one of ${Object.keys(properties)
          .map((one) => `\`${one}\``)
          .join(', ')}`;
      }
      const fault = this.fault(part, property);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #resolve(schema: Schema): { readonly name: string; readonly schema: Schema } {
    const name = schema.$ref?.replace('#/definitions/', '') ?? '';
    return { name, schema: name === '' ? schema : (this.#description.definitions[name] ?? {}) };
  }
}

function typeFault(value: unknown, expected: string): string {
  return `invalid type: ${Array.isArray(value) ? 'sequence' : `${typeof value} ${JSON.stringify(value)}`}, expected ${expected}`;
}

function matches(template: string, path: string): boolean {
  const [wanted, found] = [template.split('/'), path.split('/')];
  return wanted.length === found.length && wanted.every((part, at) => part === found[at] || (part.startsWith('{') && found[at] !== ''));
}

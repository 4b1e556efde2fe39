import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import pg from 'pg';

/** Something that is searched: records in their order, so that what is split over two of them is found. */
export interface Haystack {
  readonly name: string;
  readonly records: readonly Buffer[];
}

/** Where a secret was found, and in which form. */
export interface Leak {
  readonly where: string;
  readonly form: string;
}

const UNPACKED_MAX_BYTES = 256 * 1024 * 1024;
const GZIP = Buffer.from([0x1f, 0x8b, 0x08]);
const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** Searches for a secret as it is, as base64 of both alphabets at every place in a longer text, as hex, URL-encoded, in what was compressed, and across records. */
export function findLeaks(secret: string, haystacks: readonly Haystack[]): Leak[] {
  const forms = formsOf(secret);
  const leaks = haystacks.flatMap(({ name, records }) => {
    const whole = records.map((record, index): readonly [string, Buffer] => [`${name} record ${index}`, record]);
    const joined: (readonly [string, Buffer])[] = records.length > 1 ? [[`${name} across records`, Buffer.concat(records)]] : [];
    return [...whole, ...joined].flatMap(([where, bytes]) => findIn(forms, where, bytes, 0));
  });
  return leaks;
}

function findIn(forms: ReadonlyMap<string, RegExp>, where: string, bytes: Buffer, depth: number): Leak[] {
  // As base64 and hex are wrapped over lines by many tools, they are searched without white space too.
  const text = bytes.toString('latin1');
  const dense = text.replace(/[\s\\]+n?/g, '');
  const found = [...forms].filter(([, form]) => form.test(text) || form.test(dense)).map(([form]) => ({ where, form }));
  return depth > 2 ? found : [...found, ...unpack(bytes).flatMap(([kind, part]) => findIn(forms, `${where}, ${kind}`, part, depth + 1))];
}

/** Everything in some bytes that unpacks, wherever it begins. */
function unpack(bytes: Buffer): [kind: string, part: Buffer][] {
  const parts: [string, Buffer][] = [];
  for (const [kind, magic, open] of [
    ['gzip', GZIP, gunzipSync],
    ['zstd', ZSTD, zstdDecompressSync],
  ] as const) {
    for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1)) {
      try {
        parts.push([kind, open(bytes.subarray(at), { maxOutputLength: UNPACKED_MAX_BYTES })]);
      } catch {
        // Bytes that look like the beginning of something packed and are none.
      }
    }
  }
  return parts;
}

/** Written apart from the product's own list of forms, so that a form that it forgets is found. */
function formsOf(secret: string): Map<string, RegExp> {
  const bytes = Buffer.from(secret);
  const inside = (encoding: 'base64' | 'base64url', shift: number) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString(encoding)
      .replace(/=+$/, '');
    // Characters at both ends depend on what stands beside the secret.
    return text.slice(shift === 0 ? 0 : shift + 1, (shift + bytes.length) % 3 === 0 ? undefined : -1);
  };
  const pattern = (text: string, flags = '') => new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'), flags);
  const hex = bytes.toString('hex');
  return new Map([
    ['plain', pattern(secret)],
    ...[0, 1, 2].map((shift) => [`base64 (${shift})`, pattern(inside('base64', shift))] as const),
    ...[0, 1, 2].map((shift) => [`base64url (${shift})`, pattern(inside('base64url', shift))] as const),
    ['hex', pattern(hex, 'i')],
    ['hex with separators', new RegExp(hex.replace(/..(?!$)/g, '$&[:\\s,-]?'), 'i')],
    ['URL-encoded', pattern(encodeURIComponent(secret), 'i')],
    ['URL-encoded byte by byte', pattern(hex.replace(/../g, '%$&'), 'i')],
    ['JSON escapes', pattern(hex.replace(/../g, '\\u00$&'), 'i')],
    ['reversed', pattern([...secret].reverse().join(''))],
  ]);
}

/** Every file below a folder, each as one record; the name says where it lies. */
export async function readFolder(folder: string): Promise<Haystack[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return await Promise.all(files.map(async (file) => ({ name: file, records: [await readFile(file).catch(() => Buffer.alloc(0))] })));
}

/** Every value of every table of a database, column by column in the order of the rows. */
export async function readDatabase(url: string): Promise<Haystack[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      `select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    );
    const haystacks: Haystack[] = [];
    for (const { name } of tables.rows) {
      const { rows, fields } = await client.query<Record<string, unknown>>(`select * from ${name} order by ctid`);
      for (const field of fields) haystacks.push({ name: `${name}.${field.name}`, records: rows.map((row) => recordOf(row[field.name])) });
    }
    return haystacks;
  } finally {
    await client.end();
  }
}

function recordOf(value: unknown): Buffer {
  if (Buffer.isBuffer(value)) return value;
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value ?? null));
}

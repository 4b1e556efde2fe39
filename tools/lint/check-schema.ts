// The migrations say the same as the schema: generating one more changes nothing.
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTool } from './run-tool.ts';

const STORE = 'packages/store';

/** What a new migration would hold, or nothing. Works on a copy, so that a finding leaves no file behind. */
export async function checkSchema(root: string): Promise<readonly string[]> {
  const store = join(root, STORE);
  if (!existsSync(join(store, 'src', 'schema.ts'))) return [];
  const copy = mkdtempSync(join(tmpdir(), 'firecrew-schema-'));
  try {
    for (const name of ['src', 'migrations', 'package.json']) {
      if (existsSync(join(store, name))) cpSync(join(store, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(store, 'node_modules'), join(copy, 'node_modules'));
    const before = listing(copy);
    const kit = join(store, 'node_modules', '.bin', 'drizzle-kit');
    const args = ['generate', '--dialect', 'postgresql', '--schema', 'src/schema.ts', '--out', 'migrations'];
    // It leaves its loader's folder in the temporary one.
    const { status, output } = await runTool(kit, args, copy, { TMPDIR: copy });
    const added = listing(copy).filter((name) => !before.includes(name) && name.endsWith('.sql'));
    // drizzle-kit ends with 0 when the schema does not load: only its own words say that it compared anything.
    if (added.length === 0 && (status !== 0 || !output.includes('No schema changes'))) return [`drizzle-kit generate failed:\n${output}`];
    return added.map((name) => `the schema says more than its migrations:\n${readFileSync(join(copy, 'migrations', name), 'utf8').trim()}`);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function listing(copy: string): readonly string[] {
  const folder = join(copy, 'migrations');
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
}

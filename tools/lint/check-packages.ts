// The published packages as a registry would get them: packed, then judged by publint and are-the-types-wrong.
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTool } from './run-tool.ts';
import { workspacePackages } from './workspace-packages.ts';

/** What is wrong with the packed packages under `root`, one text each. Needs them built; `bin` holds pnpm, publint and attw. */
export async function checkPackages(root: string, bin: string): Promise<readonly string[]> {
  const findings: string[] = [];
  for (const { folder, manifest } of workspacePackages(root)) {
    if (manifest.private) continue;
    findings.push(...(await checkPacked(join(root, folder), manifest.name, bin)));
  }
  return findings;
}

async function checkPacked(folder: string, name: string, bin: string): Promise<readonly string[]> {
  const packed = await mkdtemp(join(tmpdir(), 'firecrew-pack-'));
  try {
    const pack = await runTool(join(bin, 'pnpm'), ['pack', '--pack-destination', packed], folder);
    const [file] = await readdir(packed);
    if (pack.status !== 0 || file === undefined) return [`${name} cannot be packed:\n${pack.output}`];
    const tarball = join(packed, file);
    const [publint, attw] = await Promise.all([
      runTool(join(bin, 'publint'), ['run', tarball, '--strict'], folder),
      runTool(join(bin, 'attw'), [tarball, '--profile', 'esm-only', '--no-emoji', '--no-color'], folder),
    ]);
    return [
      ...(publint.status === 0 ? [] : [`publint on ${name}:\n${publint.output}`]),
      ...(attw.status === 0 ? [] : [`are-the-types-wrong on ${name}:\n${attw.output}`]),
    ];
  } finally {
    await rm(packed, { recursive: true, force: true });
  }
}

import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url));
const SIMULATOR = join(REPOSITORY, 'packages/vmm/test/firecracker-driver/simulator/main.ts');
const DESCRIPTION = join(REPOSITORY, 'tests/cases/firecracker/firecracker.yaml');
const AGENT = join(REPOSITORY, 'apps/guest-agent/bundle/guest-agent.cjs');

/** A program that answers as Firecracker does and runs the real guest agent in a sandbox. */
export interface SimulatedFirecracker {
  readonly program: string;
  remove(): Promise<void>;
}

/** Makes one in a folder that every user can walk. */
export async function simulatedFirecracker(): Promise<SimulatedFirecracker> {
  const folder = await mkdtemp(join(tmpdir(), 'fc-sim-'));
  await chmod(folder, 0o711);
  const at = (name: string): string => join(folder, name);
  const [simulator, agent, description] = [at('simulator.mjs'), at('guest-agent.cjs'), at('firecracker.yaml')];
  const banner = "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);";
  await build({
    entryPoints: [SIMULATOR],
    outfile: simulator,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: { js: banner },
  });
  await copyFile(AGENT, agent);
  await copyFile(DESCRIPTION, description);
  await mkdir(at('disks'));
  await chmod(at('disks'), 0o1777);
  const options = { version: '1.16.1', description, node: process.execPath, agentBundle: agent, disks: at('disks') };
  await writeFile(at('options.json'), JSON.stringify(options), { mode: 0o644 });
  const program = at('firecracker');
  await writeFile(program, `#!/bin/sh\nexec ${process.execPath} ${simulator} firecracker ${at('options.json')} "$@"\n`, { mode: 0o755 });
  return { program, remove: () => rm(folder, { recursive: true, force: true }) };
}

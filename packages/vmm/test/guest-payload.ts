import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export interface GuestPayload {
  /** A folder that every user can walk. */
  readonly folder: string;
  readonly bundle: string;
  remove(): Promise<void>;
}

/** Bundles the guest agent from its sources into a fresh folder. */
export async function buildGuestPayload(): Promise<GuestPayload> {
  const folder = await mkdtemp(join(tmpdir(), 'fc-vmm-'));
  await chmod(folder, 0o711);
  const bundle = join(folder, 'guest-agent.cjs');
  await build({
    entryPoints: [fileURLToPath(new URL('../../../apps/guest-agent/src/main.ts', import.meta.url))],
    outfile: bundle,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
  });
  await chmod(bundle, 0o644);
  return { folder, bundle, remove: () => rm(folder, { recursive: true, force: true }) };
}

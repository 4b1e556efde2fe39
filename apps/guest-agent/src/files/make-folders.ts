import { chown, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { AgentConfig } from '../agent-config.ts';

/** Makes the folders of a configuration: its own state for the agent alone, the others for the account that commands run as. */
export async function makeFolders({ folders, stateFolder, user }: AgentConfig): Promise<void> {
  for (const folder of folders) {
    // Parents are walked through by that account; what they hold is closed by itself.
    await mkdir(dirname(folder), { recursive: true, mode: 0o755 });
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (user !== null) await chown(folder, user.uid, user.gid);
  }
  await mkdir(stateFolder, { recursive: true, mode: 0o700 });
}

/** Writes files of `/etc` that an image does not have, or has empty; what it says itself stays. */
export async function completeEtc(files: Readonly<Record<string, string>>, folder = '/etc'): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    const size = await stat(path).then(
      (stats) => stats.size,
      () => 0,
    );
    if (size > 0) continue;
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await writeFile(path, text, { mode: 0o644 });
  }
}

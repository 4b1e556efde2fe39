import { existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ArtifactView } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import { findMission } from '../run/find-mission.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';

/** `firecrew artifacts ID`: lists outputs, or saves them, each as a file or all as one archive. Nothing that is there is written over. */
export async function artifactsCommand(
  context: CommandContext,
  id: string,
  options: { readonly download: string | undefined; readonly archive: string | undefined; readonly json: boolean },
): Promise<number> {
  if (options.download !== undefined && options.archive !== undefined)
    throw new UsageError('usage_wrong', 'outputs are saved as files or as an archive', { action: 'Give either --download or --archive.' });
  return await withServer(context, async ({ client }) => {
    const missionId = await findMission(client, id);
    if (options.archive !== undefined) return await saveArchive(context, client, missionId, options.archive, options.json);
    const artifacts = await client.artifacts(missionId);
    if (options.download === undefined) {
      if (options.json) context.out.line(JSON.stringify(artifacts));
      else for (const line of renderArtifacts(artifacts)) context.out.line(line);
      return 0;
    }
    const folder = resolve(context.cwd, options.download);
    mkdirSync(folder, { recursive: true });
    const saved: { id: string; file: string; bytes: number }[] = [];
    for (const artifact of artifacts) {
      const file = join(
        folder,
        freeName(artifact, (name) => existsSync(join(folder, name))),
      );
      const { bytes } = await client.downloadArtifact(missionId, artifact, file);
      saved.push({ id: artifact.id, file, bytes });
      if (!options.json) context.out.line(`${file}  ${bytes} bytes`);
    }
    if (options.json) context.out.line(JSON.stringify(saved));
    return 0;
  });
}

async function saveArchive(
  context: CommandContext,
  client: FirecrewClient,
  missionId: string,
  path: string,
  json: boolean,
): Promise<number> {
  const file = resolve(context.cwd, path);
  if (existsSync(file))
    throw new UsageError('usage_wrong', `${file} is there already`, { id: file, action: 'Name a file that is not there.' });
  const { bytes } = await client.downloadArchive(missionId, file);
  context.out.line(json ? JSON.stringify({ file, bytes }) : `${file}  ${bytes} bytes`);
  return 0;
}

/** A plain name for an artifact in a folder where some are taken. Its own name comes from a guest and is never a path. */
export function freeName(artifact: Pick<ArtifactView, 'id' | 'name'>, isTaken: (name: string) => boolean): string {
  const last = artifact.name.split(/[/\\]/).at(-1) ?? '';
  const plain = last
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[.-]+/, '')
    .slice(-100);
  const name = plain === '' ? artifact.id : plain;
  return isTaken(name) ? `${artifact.id}-${name}` : name;
}

/** Outputs as a table. */
export function renderArtifacts(artifacts: readonly ArtifactView[]): string[] {
  if (artifacts.length === 0) return ['no outputs yet'];
  const rows = artifacts.map((artifact) => [
    artifact.id,
    artifact.kind,
    `${artifact.bytes}${artifact.truncated ? ' (cut)' : ''}`,
    artifact.attempt === null ? '-' : String(artifact.attempt),
    cleanLine(artifact.name, 80),
  ]);
  return renderTable(['artifact', 'kind', 'bytes', 'attempt', 'name'], rows);
}

import type { ArtifactDigest, ArtifactManifest, DamagedArtifact, StoredArtifact } from '@firecrew/rootfs';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';

/** Characters of an id that lists show; any end of it that is unique names it. */
const SHOWN_ID_CHARS = 12;

/** An artifact as programs read it. */
export interface ArtifactView {
  readonly id: string;
  readonly kind: ArtifactManifest['kind'];
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly folder: string;
  readonly manifest: ArtifactManifest;
}

/** An artifact with the names that lead to it. */
export function viewOf(artifact: StoredArtifact, names: ReadonlyMap<string, ArtifactDigest>): ArtifactView {
  const { id, manifest, sizeBytes, folder } = artifact;
  return { id, kind: manifest.kind, names: namesOf(id, names), sizeBytes, folder, manifest };
}

/** The names that lead to an id. */
export function namesOf(id: string, names: ReadonlyMap<string, ArtifactDigest>): string[] {
  return [...names].flatMap(([name, one]) => (one === id ? [name] : []));
}

/** Artifacts as a table, those that cannot be read below it. */
export function renderArtifacts(views: readonly ArtifactView[], damaged: readonly DamagedArtifact[]): string[] {
  const rows = views.map(({ id, kind, names, sizeBytes, manifest }) => [
    id.slice(-SHOWN_ID_CHARS),
    kind,
    names.join(', ') || '-',
    mebibytes(sizeBytes),
    cleanLine(describe(manifest), 80),
  ]);
  const table =
    views.length === 0
      ? ['nothing yet; make an image with: firecrew image build NAME --from SOURCE']
      : renderTable(['id', 'kind', 'name', 'MiB', 'what'], rows);
  return [...table, ...damaged.map(({ id, error }) => `${id.slice(-SHOWN_ID_CHARS)}  damaged: ${cleanLine(error.message, 200)}`)];
}

/** One line on what an artifact holds. */
export function describe(manifest: ArtifactManifest): string {
  const { architecture } = manifest;
  switch (manifest.kind) {
    case 'image': {
      const { source } = manifest;
      const from = source.kind === 'suite' ? source.suite : source.kind === 'directory' ? 'a folder' : (source.reference ?? source.digest);
      return `${from}${manifest.npm.map((name) => `, ${name.split(' ')[0]}`).join('')} (${architecture}, ${manifest.entryCount} files)`;
    }
    case 'kernel':
      return `Linux ${manifest.version} (${architecture}, ${manifest.modules.length} modules)`;
    case 'payload':
      return `guest agent with Node ${manifest.nodeVersion} (${architecture})`;
  }
}

/** Bytes as MiB. */
export function mebibytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(1);
}

import { byteKey, type ManifestEntry } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { formatAllowRule, intersectRules, loadAllowList } from '@firecrew/egress-policy';
import type { TurnSpec } from '@firecrew/protocol';
import { type BootArtifacts, type LayerFile, type LayerKey, layerKeyOf } from '@firecrew/rootfs';

/** The named files as a tree has them. Throws `layer_file_is_folder`: what lies in a folder is not in the key. */
export function layerFilesOf(entries: readonly ManifestEntry[], names: readonly string[]): LayerFile[] {
  const wanted = new Map(names.map((name) => [byteKey(Buffer.from(name)), name]));
  const found = new Map<string, LayerFile>();
  for (const entry of entries) {
    const key = byteKey(entry.path);
    const folder = entry.kind === 'directory' ? wanted.get(key) : folderAmong(wanted, key);
    if (folder !== undefined) {
      throw new CodedError('layer_file_is_folder', `${folder} is a folder of the tree`, {
        id: folder,
        action: 'Name the files that the set-up reads; folders are no names of a layer.',
      });
    }
    const path = wanted.get(key);
    if (path !== undefined && entry.kind !== 'directory') found.set(path, { path, kind: entry.kind, sha256: entry.sha256 });
  }
  return [...wanted.values()].map((path) => found.get(path) ?? { path, kind: 'absent', sha256: '' });
}

function folderAmong(wanted: ReadonlyMap<string, string>, key: string): string | undefined {
  for (let at = key.lastIndexOf('/'); at > 0; at = key.lastIndexOf('/', at - 1)) {
    const folder = wanted.get(key.slice(0, at));
    if (folder !== undefined) return folder;
  }
  return undefined;
}

function reachable(allow: readonly string[], ceiling: readonly string[] | null): string[] {
  const wanted = loadAllowList(allow);
  return (ceiling === null ? wanted : intersectRules(wanted, loadAllowList(ceiling))).map(formatAllowRule);
}

type Setup = NonNullable<TurnSpec['setup']>;

/** The key of the layer that a set-up makes of these files in a VM of these artifacts. */
export function layerKeyOfSpec(
  spec: Pick<TurnSpec, 'driver' | 'egress'> & { readonly setup: Setup & { readonly layer: NonNullable<Setup['layer']> } },
  artifacts: BootArtifacts,
  files: readonly LayerFile[],
): LayerKey {
  const { setup, driver, egress } = spec;
  return layerKeyOf({
    workspaceId: setup.layer.workspaceId,
    driver,
    ...artifacts,
    files,
    command: setup.command,
    // A set-up gets no variables beside those that the image and this version give every command.
    environment: {},
    // What the set-up can reach, however the lists that say so are cut.
    egress: {
      allow: reachable(setup.allow, egress.ceiling),
      ceiling: null,
      addressRules: egress.addressRules,
      // A set-up that ran into a budget may have made less, and ended well all the same.
      ...(egress.budgets === undefined ? {} : { budgets: JSON.stringify(egress.budgets) }),
    },
  });
}

import { CodedError, type MissionId, messageOf } from '@firecrew/base';
import { planSyntheticBase } from '@firecrew/delivery';
import type { CreateMission, RepositorySource } from '@firecrew/protocol';
import type { MissionBase, MissionRow } from '@firecrew/store';
import { type MissionRepository, readManifestOfBlob } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';
import { blobSize, workspaceIdOf } from '../driver/mission-facts.ts';
import { fetchBase } from './fetch-base.ts';
import { replayDeliveries } from './import-result.ts';
import type { RepositoryRecipe, Scratch } from './repository-cache.ts';
import { storeEmptyTree } from './store-tree.ts';

type Upload = Extract<RepositorySource, { kind: 'upload' }>;

/** Time of a synthetic base: fixed, so that the commit depends on the tree and its parent alone. */
const SYNTHETIC_BASE_AT_SECONDS = 0;

/** Makes the base of a new mission: what it starts from, checked before anything is stored. */
export async function makeBase(
  context: ServerContext,
  missionId: MissionId,
  workspaceId: string,
  spec: CreateMission,
): Promise<MissionBase> {
  const { repository } = spec;
  for (const file of spec.agent.files) await blobSize(context, workspaceId, file.digest);
  switch (repository.kind) {
    case 'upload':
      return await baseOfUpload(context, missionId, workspaceId, repository);
    case 'url':
      return await fetchBase(context, missionId, workspaceId, repository);
    case 'none': {
      const tree = await storeEmptyTree(context, workspaceId);
      return { commit: null, synthetic: false, branch: null, tree, treeBytes: tree.bytes, pack: null, shallow: [] };
    }
  }
}

async function baseOfUpload(context: ServerContext, missionId: MissionId, workspaceId: string, upload: Upload): Promise<MissionBase> {
  const treeBytes = await blobSize(context, workspaceId, upload.snapshot);
  await blobSize(context, workspaceId, upload.pack);
  const tree = { snapshotId: upload.snapshotId, blobDigest: upload.snapshot };
  try {
    const recipe = uploadRecipe(context, missionId, workspaceId, upload);
    const commit = await context.repositories.build(missionId, recipe);
    return { commit, synthetic: upload.dirty, branch: upload.branch, tree, treeBytes, pack: upload.pack, shallow: upload.shallow };
  } catch (error) {
    if (!(error instanceof CodedError) || ['blob_not_found', 'blob_damaged'].includes(error.code)) throw error;
    throw new CodedError('pack_unusable', `the uploaded repository cannot be used: ${messageOf(error)}`, { id: missionId, cause: error });
  }
}

/** How the repository of an upload is made: its pack, then the synthetic base of a dirty tree. */
function uploadRecipe(context: ServerContext, missionId: string, workspaceId: string, upload: Upload): RepositoryRecipe {
  return {
    workspaceId: workspaceIdOf(workspaceId),
    packDigest: upload.pack,
    shallow: upload.shallow,
    head: upload.head,
    replay: async (repository, scratch) =>
      upload.dirty ? await makeSyntheticBase(context, missionId, workspaceId, upload, repository, scratch) : upload.head,
  };
}

async function makeSyntheticBase(
  context: ServerContext,
  missionId: string,
  workspaceId: string,
  upload: Upload,
  repository: MissionRepository,
  scratch: Scratch,
): Promise<string> {
  const blobFile = await context.repositories.blobToFile(workspaceIdOf(workspaceId), upload.snapshot, scratch('base.blob'));
  const tree = await readManifestOfBlob(blobFile, { blobDigest: upload.snapshot, snapshotId: upload.snapshotId });
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  const made = await repository.importSyntheticBase({
    headCommit: upload.head,
    manifest: tree.entries,
    changed: upload.changed.map(bytes),
    removed: upload.removed.map(bytes),
    content: { blobFile },
    commit: planSyntheticBase({
      missionId,
      atSeconds: SYNTHETIC_BASE_AT_SECONDS,
      ...(upload.author === null ? {} : { identity: upload.author }),
    }),
  });
  return made.commit;
}

/** How the repository of a stored mission is rebuilt, delivered commits included; undefined for a mission without one. */
export async function recipeOf(context: ServerContext, row: MissionRow): Promise<RepositoryRecipe | undefined> {
  const { base, spec } = row;
  if (base === null || base.pack === null || base.commit === null) return undefined;
  const { repository } = spec;
  const made =
    repository.kind === 'upload' ? uploadRecipe(context, row.id, row.workspaceId, repository) : fetchedRecipe(row.workspaceId, base);
  return {
    ...made,
    replay: async (rebuilt, scratch) => {
      const commit = await made.replay(rebuilt, scratch);
      const mission = await context.store.load(row.id);
      if (mission !== undefined) await replayDeliveries(context, row, mission, rebuilt, scratch);
      return commit;
    },
  };
}

function fetchedRecipe(workspaceId: string, base: MissionBase): RepositoryRecipe {
  const head = base.commit ?? '';
  return { workspaceId: workspaceIdOf(workspaceId), packDigest: base.pack ?? '', shallow: base.shallow, head, replay: async () => head };
}

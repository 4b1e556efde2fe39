import { createReadStream } from 'node:fs';
import { CodedError, type MissionId } from '@firecrew/base';
import { decideRemoteUrl } from '@firecrew/delivery';
import type { RepositorySource } from '@firecrew/protocol';
import type { MissionBase } from '@firecrew/store';
import { exportTree, MissionRepository, snapshotDirectory } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';
import { workspaceIdOf } from '../driver/mission-facts.ts';
import { withServerRemote } from './server-remote.ts';
import { storeSnapshotFile } from './store-tree.ts';

/** Bytes of a fetched history. */
const MAX_PACK_BYTES = 16 * 1024 * 1024 * 1024;

/** Fetches the branch of a URL with its whole history and keeps it as a pack and a snapshot, from which the repository is rebuilt anywhere. */
export async function fetchBase(
  context: ServerContext,
  missionId: MissionId,
  workspaceId: string,
  source: Extract<RepositorySource, { kind: 'url' }>,
): Promise<MissionBase> {
  const decision = decideRemoteUrl({ url: source.url, side: 'server' });
  if (decision.verdict === 'refused')
    throw new CodedError('repository_url_refused', `the repository URL is refused: ${decision.reason}`, {
      id: missionId,
      action: `The rule is: ${decision.rule}.`,
    });
  return await context.repositories.withScratch(async (scratch) => {
    const repository = await MissionRepository.init(scratch('fetched'));
    const fetched = await withServerRemote(context, source.url, (remote) =>
      repository.fetch({ ...remote, ...(source.branch === null ? {} : { branch: source.branch }) }),
    );
    await exportTree(repository.dir, fetched.commit, scratch('tree'));
    const snapshot = await snapshotDirectory(scratch('tree'), scratch('tree.blob'));
    const tree = await storeSnapshotFile(context, workspaceId, scratch('tree.blob'), snapshot);
    await repository.packFor(fetched.commit, {}, scratch('history.pack'));
    const pack = await context.blobs.put(workspaceIdOf(workspaceId), createReadStream(scratch('history.pack')), {
      maxBytes: MAX_PACK_BYTES,
    });
    return {
      commit: fetched.commit,
      synthetic: false,
      branch: fetched.branch,
      tree,
      treeBytes: tree.bytes,
      pack: pack.digest,
      shallow: [],
    };
  });
}

import { resolve } from 'node:path';
import { inspectRepository } from '@firecrew/workspace';
import { cleanLine } from '../render/clean-text.ts';
import { bringBack } from '../run/bring-back.ts';
import { findMission } from '../run/find-mission.ts';
import { recallRepository } from '../run/remember-mission.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';

export interface FetchOptions {
  readonly repo: string | undefined;
  readonly push: string | undefined;
  readonly pushDirty: boolean;
  readonly json: boolean;
}

/** `firecrew fetch ID`: writes the delivered branch into a repository of this machine. */
export async function fetchCommand(context: CommandContext, id: string, options: FetchOptions): Promise<number> {
  return await withServer(context, async ({ client, home }) => {
    const missionId = await findMission(client, id);
    const path = options.repo === undefined ? (recallRepository(home, missionId) ?? context.cwd) : resolve(context.cwd, options.repo);
    const repository = await inspectRepository(path, context.env);
    const { push, pushDirty } = options;
    const { pack, written, pushed, pushDetail } = await bringBack(client, missionId, repository, home.paths.client, {
      push,
      pushDirty,
      env: context.env,
    });
    const { commit, awaitingApproval } = pack;
    if (options.json) {
      const { branch, verdict } = written;
      context.out.line(
        JSON.stringify({ missionId, repository: repository.root, branch, commit, verdict, awaitingApproval, pushed, pushDetail }),
      );
    } else {
      context.out.line(
        `branch  ${cleanLine(written.branch)} in ${cleanLine(repository.root)}${written.verdict === 'already_there' ? ' (it was there already)' : ''}`,
      );
      context.out.line(`commit  ${commit}`);
      if (pushed !== 'not_wanted')
        context.out.line(`pushed  ${pushed.replaceAll('_', ' ')}${pushDetail === '' ? '' : `: ${cleanLine(pushDetail, 1_000)}`}`);
      if (awaitingApproval)
        context.out.line(`it changes protected paths, or what it changes could not be listed; after a look: firecrew approve ${missionId}`);
    }
    return pushed === 'failed' || pushed === 'awaiting_approval' ? 1 : 0;
  });
}

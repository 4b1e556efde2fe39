import { messageOf } from '@firecrew/base';
import type { Delivery } from '@firecrew/protocol';
import type { MissionRow } from '@firecrew/store';
import type { ServerContext } from '../context.ts';
import { withServerRemote } from './server-remote.ts';

/** What a push came to, and the branch that now holds the commit. */
export interface Pushed {
  readonly state: Delivery['pushed'];
  readonly detail: string;
  readonly branch: string;
}

/**
 * Pushes a delivered commit where the mission's repository is a URL and asks for it. Changes to protected paths wait for a
 * person, and so do changes that could not be listed (`unlisted` says why) and all that a learning run made. A push that fails is a degraded success: commit and artifacts are stored, and the reason is told.
 */
export async function pushDelivery(
  context: ServerContext,
  row: MissionRow,
  made: {
    readonly branch: string;
    readonly commit: string | null;
    readonly protectedPaths: readonly string[];
    readonly unlisted: string | null;
  },
  facts: { readonly approved: boolean },
): Promise<Pushed> {
  const { branch, commit } = made;
  const { repository } = row.spec;
  if (commit === null) return { state: 'not_wanted', detail: '', branch };
  const reason = made.unlisted ?? reasonOf(made.protectedPaths, row.spec.learn !== undefined);
  if (reason !== null && !facts.approved) return { state: 'awaiting_approval', detail: reason, branch };
  if (repository.kind !== 'url' || !repository.push) return { state: 'not_wanted', detail: '', branch };
  try {
    const local = await context.repositories.open(row.id);
    const outcome = await withServerRemote(context, repository.url, (remote) => local.push({ ...remote, branch, commit }));
    const ok = outcome.verdict === 'pushed' || outcome.verdict === 'up_to_date';
    return {
      state: ok ? 'pushed' : 'failed',
      detail: [outcome.detail, outcome.remoteText]
        .filter((text) => text !== '')
        .join('\n')
        .slice(0, 2000),
      branch: ok ? outcome.branch : branch,
    };
  } catch (error) {
    return { state: 'failed', detail: messageOf(error).slice(0, 2000), branch };
  }
}

function reasonOf(protectedPaths: readonly string[], isLearning: boolean): string | null {
  if (protectedPaths.length > 0) return `changes protected paths: ${protectedPaths.slice(0, 20).join(', ')}`;
  return isLearning ? 'it is the work of a learning run, which reached more than missions may' : null;
}

import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FirecrewClient, ReceivedPack } from '@firecrew/sdk';
import { type LocalRepository, pushBranch, type WrittenBranch, writeBranch } from '@firecrew/workspace';
import type { Pushed } from './run-event.ts';

/** Where delivered work goes. */
export interface BringBackOptions {
  readonly push: string | undefined;
  readonly pushDirty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What was brought back. */
export interface BroughtBranch {
  readonly pack: ReceivedPack;
  readonly written: WrittenBranch;
  readonly pushed: Pushed;
  readonly pushDetail: string;
}

/** Fetches the delivered pack, makes a branch of it in the caller's repository, and pushes that where it is asked for and allowed. */
export async function bringBack(
  client: FirecrewClient,
  missionId: string,
  repository: LocalRepository,
  scratchRoot: string,
  options: BringBackOptions,
): Promise<BroughtBranch> {
  const scratch = await mkdtemp(join(scratchRoot, 'fetch-'));
  try {
    const packFile = join(scratch, 'delivery.pack');
    const pack = await client.pack(missionId, packFile);
    const written = await writeBranch(repository, { packFile, branch: pack.branch, commit: pack.commit });
    return { pack, written, ...(await push(repository, pack, written, options)) };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Whether a push may be made: reasons not to, by what the pack says. */
export function pushRefusal(
  pack: Pick<ReceivedPack, 'synthetic' | 'awaitingApproval'>,
  options: Pick<BringBackOptions, 'push' | 'pushDirty'>,
): { pushed: Pushed; pushDetail: string } | undefined {
  if (options.push === undefined) return { pushed: 'not_wanted', pushDetail: '' };
  if (pack.awaitingApproval)
    return {
      pushed: 'awaiting_approval',
      pushDetail:
        'it changes protected paths, or what it changes could not be listed, or it is of a learning run; a person approves it first',
    };
  if (pack.synthetic && !options.pushDirty)
    return { pushed: 'failed', pushDetail: 'its base holds uncommitted changes; to push them too, add --push-dirty' };
  return undefined;
}

async function push(
  repository: LocalRepository,
  pack: ReceivedPack,
  written: WrittenBranch,
  options: BringBackOptions,
): Promise<{ pushed: Pushed; pushDetail: string }> {
  const refusal = pushRefusal(pack, options);
  if (refusal !== undefined || options.push === undefined) return refusal ?? { pushed: 'not_wanted', pushDetail: '' };
  const outcome = await pushBranch(repository, { remote: options.push, branch: written.branch, env: options.env });
  const ok = outcome.verdict === 'pushed' || outcome.verdict === 'up_to_date';
  const pushed: Pushed = outcome.verdict === 'pushed' ? 'pushed' : outcome.verdict === 'up_to_date' ? 'up_to_date' : 'failed';
  const said = ok
    ? outcome.redirected
      ? `as ${outcome.branch}: the remote holds other work under that name`
      : ''
    : `${outcome.reason}: ${outcome.detail} ${outcome.remoteText}`;
  return { pushed, pushDetail: said.trim() };
}

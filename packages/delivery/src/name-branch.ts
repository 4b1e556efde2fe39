import { DeliveryError } from './delivery-error.ts';

/** Every branch of ours lies in this folder of the remote. */
export const BRANCH_PREFIX = 'firecrew/';
/** Longest slug, in characters. */
export const SLUG_MAX_CHARS = 40;
/** Characters of a mission id and of a commit id in a branch name. */
export const SHORT_ID_CHARS = 8;
/** Longest branch name, in characters: the ref is a file name on most remotes (255 bytes, less `.lock`). */
export const BRANCH_MAX_CHARS = 200;

const FALLBACK_SLUG = 'mission';
const COMMIT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** `title` as 1 to `SLUG_MAX_CHARS` characters of `a-z`, `0-9` and single inner `-`; `mission` when nothing of it can be kept. */
export function slugOf(title: string): string {
  const plain = title.normalize('NFKD').replace(/\p{M}+/gu, '');
  const words = plain.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  const cut = words.replace(/^-+/, '').slice(0, SLUG_MAX_CHARS).replace(/-+$/, '');
  return cut === '' ? FALLBACK_SLUG : cut;
}

/** What names the branch of a delivery. */
export interface BranchInput {
  readonly title: string;
  /** Id of the mission; its last 8 characters must be `0-9a-z`. */
  readonly missionId: string;
  /** False sends the work to the `-wip` branch. */
  readonly verified: boolean;
}

/** `firecrew/<slug>-<id8>`, with `-wip` behind it for unverified work. Throws `invalid_mission_id`. */
export function nameBranch(input: BranchInput): string {
  const id = input.missionId.slice(-SHORT_ID_CHARS);
  if (!/^[0-9a-z]{8}$/.test(id))
    throw new DeliveryError('invalid_mission_id', `mission id ${JSON.stringify(input.missionId)} has no short form`);
  return `${BRANCH_PREFIX}${slugOf(input.title)}-${id}${input.verified ? '' : '-wip'}`;
}

/** `<branch>-<sha8>`: where work goes when `branch` holds other history. Throws `invalid_commit_id`, `invalid_branch`. */
export function nameDivergedBranch(branch: string, commitId: string): string {
  if (!COMMIT_ID.test(commitId)) throw new DeliveryError('invalid_commit_id', `${JSON.stringify(commitId)} is no full commit id`);
  if (!isSafeBranchName(branch)) throw new DeliveryError('invalid_branch', `${JSON.stringify(branch)} is no branch name`);
  return `${branch}-${commitId.slice(0, SHORT_ID_CHARS)}`;
}

/** Whether `name` is a full commit id in lower-case hexadecimal: 40 (SHA-1) or 64 (SHA-256) characters. */
export function isCommitId(name: string): boolean {
  return COMMIT_ID.test(name);
}

/** Whether `name` can stand behind `refs/heads/`: the rules of `git check-ref-format --branch`, and no leading `-`. */
export function isSafeBranchName(name: string): boolean {
  if (name === '' || name === '@' || name === 'HEAD' || name.length > BRANCH_MAX_CHARS || name.startsWith('-')) return false;
  if (/[\u0000-\u0020\u007f~^:?*[\\]/.test(name)) return false;
  if (name.includes('..') || name.includes('@{') || name.endsWith('.')) return false;
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'));
}

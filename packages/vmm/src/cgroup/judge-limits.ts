import type { GroupLimit } from './vm-limits.ts';

/** What came of setting one limit: nothing to say, or why it could not be set. */
export interface LimitTrial {
  readonly file: GroupLimit['file'];
  readonly why?: string;
}

/** What a trial with a group of its own has shown on this host. */
export type GroupTrial =
  | { readonly parent: string; readonly limits: readonly LimitTrial[] }
  /** No group can be made, or no process can join one. */
  | { readonly why: string };

/** How VMs are limited here. `files` are the limits that each VM's group gets; without any, VMs get no group. */
export interface LimitsVerdict {
  readonly parent: string | undefined;
  readonly files: readonly GroupLimit['file'][];
  /** For a person: what is limited, what is not, and why. */
  readonly detail: string;
  /** Limits are demanded and not all of them can be set: no VM may run. */
  readonly refused: boolean;
}

const NAMES: Readonly<Record<GroupLimit['file'], string>> = {
  'memory.max': 'memory',
  'memory.swap.max': 'swap',
  'cpu.max': 'processors',
  'pids.max': 'threads',
};

/** Turns a trial into what VMs get. Whatever is not limited is named with its reason. */
export function judgeLimits(trial: GroupTrial, required: boolean): LimitsVerdict {
  if ('why' in trial) return withoutGroup(trial.why, required);
  const set = trial.limits.filter(({ why }) => why === undefined);
  const missing = trial.limits.filter(({ why }) => why !== undefined);
  if (set.length === 0) return withoutGroup(missing[0]?.why ?? 'there is nothing to limit', required);
  const files = set.map(({ file }) => file);
  const limited = `${names(set)} of each VMM limited by a group of its own below ${trial.parent}`;
  if (missing.length === 0) return { parent: trial.parent, files, detail: limited, refused: false };
  const detail = `${limited}; NOT LIMITED: ${names(missing)} (${missing[0]?.why ?? 'unknown'})`;
  return { parent: trial.parent, files, detail, refused: required };
}

function withoutGroup(why: string, required: boolean): LimitsVerdict {
  return {
    parent: undefined,
    files: [],
    detail: `NOT LIMITED by the host: memory, swap, processors and threads of each VMM (${why})`,
    refused: required,
  };
}

const names = (limits: readonly LimitTrial[]): string => limits.map(({ file }) => NAMES[file]).join(', ');

import type { ProcessIdentity } from '@firecrew/base';
import { isAlive } from '@firecrew/base';
import { attemptSchema, type SupervisorFile, serverFileSchema, supervisorFileSchema, turnIdSchema } from '@firecrew/protocol';
import * as z from 'zod';
import type { HomePaths } from '../home/home-paths.ts';
import { readForeignState, readState, replaceFile } from '../home/write-file.ts';
import { ROLES, type Role } from './decide-supervision.ts';
import { runsAsServer } from './server-account.ts';

const shimSchema = z.object({
  turnId: turnIdSchema,
  attempt: attemptSchema,
  pid: z.int().min(1),
  startTicks: z.string(),
  bootId: z.string(),
});
/** A process that owns one attempt. */
export type ShimProcess = z.infer<typeof shimSchema>;

const problemSchema = z.object({
  role: z.enum(ROLES),
  code: z.string(),
  message: z.string(),
  action: z.string().nullable(),
  at: z.string(),
});
/** Why a role could not be started the last time. */
export type RoleProblem = z.infer<typeof problemSchema>;

/** The living processes of a home. */
export interface LivingProcesses {
  readonly supervisor: ProcessIdentity | undefined;
  readonly roles: Readonly<Record<Role, ProcessIdentity | undefined>>;
  readonly shims: readonly ShimProcess[];
  readonly restarts: number;
}

/** Reads which processes of a home live now. What is dead is dropped. */
export function readProcesses(paths: HomePaths): LivingProcesses {
  const file = readState(paths.supervisorFile, supervisorFileSchema);
  const living = (view: { pid: number; startTicks: string } | null | undefined): ProcessIdentity | undefined => {
    if (view == null || file === undefined) return undefined;
    const identity = { pid: view.pid, startTicks: view.startTicks, bootId: file.bootId };
    return isAlive(identity) ? identity : undefined;
  };
  const named = readForeignState(paths.serverFile, serverFileSchema);
  const server = living(file?.server) ?? (named !== undefined && isAlive(named) && runsAsServer(named.pid) ? pick(named) : undefined);
  return {
    supervisor: living(file?.supervisor),
    roles: { database: living(file?.database), server, nodeAgent: living(file?.nodeAgent) },
    shims: readShims(paths),
    restarts: file?.restarts ?? 0,
  };
}

/** The shims that live, from what the node agent last wrote. */
export function readShims(paths: HomePaths): ShimProcess[] {
  return (readState(paths.shims, z.array(shimSchema)) ?? []).filter((shim) => isAlive(shim));
}

export function writeSupervisorFile(paths: HomePaths, file: SupervisorFile): void {
  replaceFile(paths.supervisorFile, `${JSON.stringify(file)}\n`);
}

export function readProblems(paths: HomePaths): RoleProblem[] {
  return readState(paths.problems, z.array(problemSchema)) ?? [];
}

export function writeProblems(paths: HomePaths, problems: readonly RoleProblem[]): void {
  replaceFile(paths.problems, `${JSON.stringify(problems)}\n`);
}

function pick(identity: ProcessIdentity): ProcessIdentity {
  return { pid: identity.pid, startTicks: identity.startTicks, bootId: identity.bootId };
}

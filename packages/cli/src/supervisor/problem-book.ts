import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { HomePaths } from '../home/home-paths.ts';
import type { Role } from './decide-supervision.ts';
import { readLastWords } from './last-words.ts';
import { type RoleProblem, writeProblems } from './supervisor-state.ts';

/** A service that ended this often in a row does not wait for another one any more: why it ends is told. */
export const TOLD_AFTER_FAILURES = 3;

/** Where a service writes its log. */
export function serviceLog(paths: HomePaths, role: 'server' | 'nodeAgent'): string {
  return `${paths.logs}/${role === 'server' ? 'server' : 'node-agent'}.log`;
}

/** Why services of a home do not run, written down for the commands that wait for them. */
export class ProblemBook {
  readonly #paths: HomePaths;
  readonly #problems = new Map<Role, RoleProblem>();

  /** Begins an empty one in the place of an earlier supervisor's. */
  constructor(paths: HomePaths) {
    this.#paths = paths;
  }

  /** Writes down that there is no problem. */
  open(): void {
    this.#write();
  }

  /** A process could not be started. */
  notStarted(role: Role, error: unknown): void {
    const action = error instanceof CodedError ? (error.action ?? null) : null;
    this.#set(role, { code: codeOf(error) ?? 'internal', message: messageOf(error), action });
  }

  /** A process ended, for the `failures`-th time in a row: told by what it said last, once that is no accident. */
  ended(role: Role, pid: number, failures: number): void {
    if (role === 'database' || failures < TOLD_AFTER_FAILURES) return;
    const words = readLastWords(serviceLog(this.#paths, role), pid);
    if (words !== undefined) this.#set(role, words);
  }

  isWell(role: Role): void {
    if (this.#problems.delete(role)) this.#write();
  }

  #set(role: Role, problem: Pick<RoleProblem, 'code' | 'message' | 'action'>): void {
    this.#problems.set(role, { role, ...problem, at: new Date().toISOString() });
    this.#write();
  }

  #write(): void {
    writeProblems(this.#paths, [...this.#problems.values()]);
  }
}

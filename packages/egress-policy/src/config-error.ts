import type { ConfigFault } from './reasons.ts';

/** One refused entry of a configuration: which, why, and what to write instead. */
export interface ConfigProblem {
  readonly entry: string;
  readonly reason: ConfigFault;
  readonly message: string;
}

/** A configuration that must not be loaded; `code` is `egress_config`, `problems` lists every refused entry. */
export class EgressConfigError extends Error {
  readonly code = 'egress_config';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(`egress configuration refused: ${problems.map((problem) => problem.message).join('; ')}`);
    this.name = 'EgressConfigError';
    this.problems = problems;
  }
}

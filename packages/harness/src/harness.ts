import type { SpawnRefusal } from '@firecrew/spawn-bounds';

/** Where an agent finds things in its VM or sandbox; absolute paths, all but `workspace` outside the tree. */
export interface HarnessPaths {
  readonly workspace: string;
  readonly taskFile: string;
  readonly feedbackFile: string;
  readonly agentDir: string;
}

/** A file of the caller that lands read-only and executable in the agent's folder. */
export interface AgentFile {
  /** One plain path component: letters, digits, `.`, `_`, `-`, at most 100. */
  readonly name: string;
  /** Where its content lies on the host. */
  readonly hostPath: string;
}

/** Everything one round is started from. */
export interface RoundInput {
  readonly task: string;
  /** From 1. */
  readonly round: number;
  /** What the gate said of the round before; absent in round 1 and there alone. */
  readonly feedback?: string;
  /** Shell command of the agent. */
  readonly agentCmd: string;
  readonly agentFiles?: readonly AgentFile[];
  readonly paths: HarnessPaths;
  /** The caller's environment, unchecked. */
  readonly env?: unknown;
  /** Secret-shaped names that the backend's contract declares. */
  readonly contract?: readonly string[];
}

/** A file to place before the round; `mode` in octal as a number. */
export interface FileToPut {
  readonly path: string;
  readonly mode: number;
  readonly source: { readonly kind: 'text'; readonly text: string } | { readonly kind: 'host_file'; readonly path: string };
}

/** One round, ready to start. Standard input is closed. */
export interface RoundPlan {
  readonly verdict: 'ready';
  readonly files: readonly FileToPut[];
  /** Folders that must exist before the files are placed. */
  readonly folders: readonly string[];
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The caller's variables as checked; hand them to `buildGuestEnvironment` as `caller`. */
  readonly callerEnvironment: Readonly<Record<string, string>>;
  /** The platform's own; hand them on as `platform`. */
  readonly platformEnvironment: Readonly<Record<string, string>>;
}

/** Drives one kind of agent CLI. */
export interface Harness {
  readonly kind: string;
  /**
   * Plans one round: files, command line and environment. A command or environment out of bounds is a refusal.
   * Throws `harness_round_invalid`, `harness_paths_invalid` and `agent_file_invalid` for broken contracts.
   */
  planRound(input: RoundInput): RoundPlan | SpawnRefusal;
}

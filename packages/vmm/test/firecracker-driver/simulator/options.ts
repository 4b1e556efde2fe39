import { readFileSync } from 'node:fs';

/** What the simulated Firecracker is, and which fault it has. Read from a JSON file, since the jailer clears the environment. */
export interface SimulatorOptions {
  /** Version that it says it is, and whose fields it takes. */
  readonly version: string;
  /** File with the published description of the API, as YAML or as JSON. */
  readonly description: string;
  /** The guest agent that stands for the guest: its Node and its bundle. */
  readonly node: string;
  readonly agentBundle: string;
  /** Folder that holds what guests wrote, one folder for each scratch disk. */
  readonly disks: string;
  /**
   * `absent`: it never listens. `silent`: it takes connections and answers nothing. `silentOnceStarted`: nothing after the start.
   * `notJson`: it refuses with words that are no JSON. `endsAtStart`: it exits with `exitCode` instead of starting the guest.
   */
  readonly api?: 'absent' | 'silent' | 'silentOnceStarted' | 'notJson' | 'endsAtStart';
  /**
   * `silent`: it never dials. `panics`: its kernel panics at once. `staysAfterEnd`: it halts instead of resetting when its agent ends, and
   * does not hear the keys. `haltsAfterEnd`: the same, and a press of the keys resets it.
   */
  readonly guest?: 'silent' | 'panics' | 'staysAfterEnd' | 'haltsAfterEnd';
  readonly exitCode?: number;
  /** What SIGUSR1 does: the guest's kernel panics, or Firecracker exits with this code. */
  readonly onSignal?: 'panic' | number;
  /** Port of the guest on which it sends back what comes. */
  readonly echoPort?: number;
  /** Folder that stands for cgroup v2; absent where the jailer makes no groups. */
  readonly cgroups?: string;
}

export function readOptions(file: string): SimulatorOptions {
  return JSON.parse(readFileSync(file, 'utf8')) as SimulatorOptions;
}

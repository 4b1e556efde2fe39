import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { sendSignal } from './processes.ts';
import { until } from './until.ts';

/** A program of the installation that tests start, kill and start again. */
export class ManagedProcess {
  readonly #arguments: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  constructor(args: readonly string[], environment: Readonly<Record<string, string>>, logFile: string) {
    this.#arguments = args;
    this.#environment = environment;
    this.#logFile = logFile;
  }

  get pid(): number {
    const { pid } = this.#child ?? {};
    if (pid === undefined) throw new Error(`${this.#arguments[0]} does not run`);
    return pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  start(): void {
    const log = openSync(this.#logFile, 'a');
    this.#child = spawn(process.execPath, [...this.#arguments], { stdio: ['ignore', log, log], env: { ...this.#environment } });
    closeSync(log);
  }

  /** Ends the process and waits until it is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!this.isRunning) return;
    sendSignal(this.pid, signal);
    await until(`the end of ${this.#arguments[0]}`, () => !this.isRunning, 20_000);
  }

  /** The last lines of its log, for the message of a failed test. */
  logTail(lines = 40): string {
    try {
      return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n');
    } catch {
      return '(no log)';
    }
  }
}

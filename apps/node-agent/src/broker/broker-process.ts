import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { Logger } from 'pino';
import { type BrokerOrder, type BrokerReport, brokerReportSchema, REPORT_MAX_CHARS } from './broker-messages.ts';
import { readMessages } from './read-messages.ts';
import { BROKER_SETTLED_MS, restartDelayMs } from './restart-delay.ts';

/** Time that a broker has to end by itself. */
const STOP_MS = 2_000;

/**
 * No memory of a broker goes into a core file. With a limit of one byte the kernel starts no program of `core_pattern` either; where `prlimit` is
 * missing, such a program would still get it.
 */
const WITHOUT_CORES = 'prlimit --pid $$ --core=1:1 2>/dev/null || ulimit -c 0; exec "$0" "$@"';

export interface BrokerProgram {
  readonly node: string;
  readonly broker: string;
  readonly socketPath: string;
  /** Account of the process; null for that of this one. */
  readonly account: { readonly uid: number; readonly gid: number } | null;
}

/** Runs one broker as long as it is wanted, and tells each new one all there is to know. */
export class BrokerProcess {
  readonly #program: BrokerProgram;
  readonly #log: Logger;
  readonly #state: () => readonly BrokerOrder[];
  readonly #onReport: (report: BrokerReport) => void;
  #child: ChildProcess | undefined;
  #isWanted = false;
  #earlyEnds = 0;
  #restart: NodeJS.Timeout | undefined;

  constructor(program: BrokerProgram, log: Logger, state: () => readonly BrokerOrder[], onReport: (report: BrokerReport) => void) {
    this.#program = program;
    this.#log = log;
    this.#state = state;
    this.#onReport = onReport;
  }

  start(): void {
    this.#isWanted = true;
    this.#spawn();
  }

  /** Tells the broker that runs now; the next one is told by `state`. */
  send(order: BrokerOrder): void {
    this.#child?.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  /** Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    clearTimeout(this.#restart);
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'close');
    child.stdin?.end();
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await gone;
    clearTimeout(timer);
  }

  #spawn(): void {
    const { node, broker, socketPath, account } = this.#program;
    const { PATH, NODE_EXTRA_CA_CERTS } = process.env;
    const child = spawn('/bin/sh', ['-c', WITHOUT_CORES, node, broker, socketPath], {
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: '/',
      env: {
        PATH: PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin',
        LANG: 'C.UTF-8',
        HOME: '/',
        ...(NODE_EXTRA_CA_CERTS === undefined ? {} : { NODE_EXTRA_CA_CERTS }),
      },
      ...(account === null ? {} : { uid: account.uid, gid: account.gid }),
    });
    this.#child = child;
    const startedMs = performance.now();
    // What is written to one that is gone is told to the next one.
    child.stdin?.on('error', () => undefined);
    child.on('error', (error) => this.#ended(child, startedMs, error.message));
    child.on('exit', (code, signal) => this.#ended(child, startedMs, signal ?? `status ${code}`));
    if (child.stdout !== null) void this.#follow(child, child.stdout);
    for (const order of this.#state()) this.send(order);
    this.#log.info({ broker: child.pid }, 'the credential broker was started');
  }

  /** Takes what a broker tells. One that says something else is of no use, and another one is started in its place. */
  async #follow(child: ChildProcess, reports: Readable): Promise<void> {
    try {
      const rules = { schema: brokerReportSchema, maxChars: REPORT_MAX_CHARS, fault: reportFault };
      for await (const report of readMessages(reports, rules)) this.#onReport(report);
    } catch (error) {
      if (!this.#isWanted || this.#child !== child) return;
      this.#log.error({ code: codeOf(error), detail: messageOf(error) }, 'the credential broker is not understood, and is ended');
      child.kill('SIGKILL');
    }
  }

  #ended(child: ChildProcess, startedMs: number, why: string): void {
    if (!this.#isWanted || this.#child !== child) return;
    this.#child = undefined;
    this.#earlyEnds = performance.now() - startedMs < BROKER_SETTLED_MS ? this.#earlyEnds + 1 : 0;
    const delayMs = restartDelayMs(this.#earlyEnds);
    this.#log.error({ code: 'broker_ended', detail: why, delayMs }, 'the credential broker ended and is started again');
    this.#restart = setTimeout(() => this.#spawn(), delayMs);
  }
}

function reportFault(why: string): CodedError {
  return new CodedError(
    'broker_report_invalid',
    `the credential broker told its node agent something that it does not understand: ${why}`,
    {
      action: 'Both come from one version; restart the node agent.',
    },
  );
}

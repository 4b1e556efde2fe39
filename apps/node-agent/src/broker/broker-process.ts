import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Logger } from 'pino';
import type { BrokerOrder } from './broker-messages.ts';
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
  #child: ChildProcess | undefined;
  #isWanted = false;
  #earlyEnds = 0;
  #restart: NodeJS.Timeout | undefined;

  constructor(program: BrokerProgram, log: Logger, state: () => readonly BrokerOrder[]) {
    this.#program = program;
    this.#log = log;
    this.#state = state;
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
      stdio: ['pipe', 'ignore', 'inherit'],
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
    for (const order of this.#state()) this.send(order);
    this.#log.info({ broker: child.pid }, 'the credential broker was started');
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

import { rmSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import type { ExecEnd, HostRequest } from '@firecrew/protocol';
import { checkCommand } from '@firecrew/spawn-bounds';
import type { AgentConfig } from '../agent-config.ts';
import type { LoopbackPorts } from '../link/loopback-pumps.ts';
import { execEnvironment, execMark } from './exec-environment.ts';
import type { ExecGroups } from './exec-groups.ts';
import { ExecProcess } from './exec-process.ts';
import { MAX_EXECS, MAX_RUNNING_EXECS } from './limits.ts';
import { OutputLog } from './output-log.ts';

type ExecRequest = Extract<HostRequest, { t: 'exec' }>;

interface Exec {
  readonly log: OutputLog;
  readonly process: ExecProcess;
  isRunning: boolean;
}

/** The execs of this VM by id. They outlive the link; each id is used once. */
export class ExecTable {
  readonly #config: AgentConfig;
  readonly #ports: LoopbackPorts;
  readonly #groups: ExecGroups | undefined;
  readonly #execs = new Map<string, Exec>();
  readonly #starting = new Map<string, Promise<void>>();
  #isClosed = false;

  /** `groups` only where commands run as another user, who cannot leave them. */
  constructor(config: AgentConfig, ports: LoopbackPorts, groups?: ExecGroups) {
    this.#config = config;
    this.#ports = ports;
    this.#groups = groups;
  }

  /** Execs that run now. */
  get running(): number {
    return this.#starting.size + [...this.#execs.values()].filter((exec) => exec.isRunning).length;
  }

  /**
   * Starts a command. Throws a coded error whose message may travel; then nothing runs. The same request again, from a host whose
   * first answer was lost, is told how that one went: `exec_id_taken` says that it runs.
   */
  async start(request: ExecRequest): Promise<void> {
    const { id } = request;
    const earlier = this.#starting.get(id);
    if (earlier !== undefined) await earlier;
    if (this.#isClosed) throw new CodedError('shutting_down', 'the guest is ending', { id });
    if (this.#execs.has(id)) throw new CodedError('exec_id_taken', `the exec ${id} was started before`, { id });
    if (this.running >= MAX_RUNNING_EXECS || this.#execs.size >= MAX_EXECS) {
      throw new CodedError('too_many_execs', `${this.running} execs run and ${this.#execs.size} are kept`, { id });
    }
    const begun = this.#begin(request);
    this.#starting.set(id, begun);
    try {
      await begun;
    } finally {
      this.#starting.delete(id);
    }
  }

  /** How the exec ended, when it has. Throws `exec_unknown`. */
  wait(id: string): Promise<ExecEnd> {
    return this.#find(id).process.ended;
  }

  /** The output from an offset on. Throws `exec_unknown`. */
  follow(id: string, offset: number): AsyncGenerator<Buffer> {
    return this.#find(id).log.readFrom(offset);
  }

  /** Signals a running exec; one that has ended is left alone. Throws `exec_unknown`. */
  kill(id: string, signal: NodeJS.Signals): void {
    const exec = this.#find(id);
    if (exec.isRunning) exec.process.signal(signal);
  }

  /** Starts nothing more, kills all that runs and settles when it is gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const running = [...this.#execs.values()].filter((exec) => exec.isRunning);
    for (const exec of running) exec.process.signal('SIGKILL');
    await Promise.all(running.map((exec) => exec.process.ended));
  }

  async #begin(request: ExecRequest): Promise<void> {
    const { id, cwd, timeoutMs } = request;
    const command = checkCommand(request.argv);
    if (command.verdict === 'refused') throw anyRefusal(command.rule, command.message);
    const environment = execEnvironment(id, request.env, this.#config, this.#ports);
    if (!environment.ok) throw anyRefusal(environment.code, environment.message);
    await checkFolder(cwd);
    const path = join(this.#config.stateFolder, `${id}.log`);
    const log = new OutputLog(path, request.outputLimitBytes);
    try {
      const mark = execMark(this.#config.attemptMarker, id);
      const checked = { id, mark, argv: command.argv, cwd, environment: environment.environment, timeoutMs, user: this.#config.user };
      const process = await ExecProcess.start(checked, log, this.#config.stateFolder, this.#groups);
      const exec: Exec = { log, process, isRunning: true };
      this.#execs.set(id, exec);
      void process.ended.then(() => {
        exec.isRunning = false;
      });
      if (this.#isClosed) process.signal('SIGKILL');
    } catch (error) {
      log.close();
      rmSync(path, { force: true });
      throw error;
    }
  }

  #find(id: string): Exec {
    const exec = this.#execs.get(id);
    if (exec === undefined) throw new CodedError('exec_unknown', `no exec ${id} was started`, { id });
    return exec;
  }
}

async function checkFolder(cwd: string): Promise<void> {
  const stats = await stat(cwd).catch(() => undefined);
  if (stats?.isDirectory() === true) return;
  throw new CodedError('cwd_unusable', `the working directory ${JSON.stringify(cwd.slice(0, 200))} is no folder that can be entered`);
}

function anyRefusal(code: string, message: string): CodedError {
  // any code: the rules of spawn-bounds, and the reserved names of the agent
  return new CodedError(code, message);
}

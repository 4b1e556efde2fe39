import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { CodedError, codeOf } from '@firecrew/base';
import type { ExecEnd } from '@firecrew/protocol';
import { findMarked, killMarked, signalProcess } from '@firecrew/vmm';
import type { ExecUser } from '../agent-config.ts';
import { EXEC_VARIABLE } from './exec-environment.ts';
import type { ExecGroup, ExecGroups } from './exec-groups.ts';
import { DRAIN_MAX_MS, DRAIN_QUIET_MS, KILL_GRACE_MS, KILL_WAIT_MS, LAST_BYTES_MS } from './limits.ts';
import type { OutputLog } from './output-log.ts';
import { type OutputPipe, openOutputPipe } from './output-pipe.ts';
import { readDiskRoom, readMemoryKills, unspare } from './read-shortages.ts';

/** A command that was checked. */
export interface ExecCommand {
  readonly id: string;
  /** Value of the exec's variable in all its processes. */
  readonly mark: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Account it runs as; null: the agent's own. */
  readonly user: ExecUser | null;
}

interface LeaderEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process that was just started, and its group. */
interface Started {
  readonly value: ChildProcess;
  readonly group: ExecGroup | undefined;
}

/**
 * One command and everything it leaves running.
 *
 *   running --leader ends--> draining --quiet, closed or capped--> survivors killed --> last bytes --> ended
 *   running --time limit--> SIGTERM to all --grace--> SIGKILL to all --> draining
 */
export class ExecProcess {
  readonly ended: Promise<ExecEnd>;
  readonly #mark: string;
  /** Folders whose disks the command writes to. */
  readonly #folders: readonly string[];
  /** What the kernel had killed before the command ran. */
  readonly #memoryKills: number | undefined;
  readonly #child: ChildProcess;
  readonly #group: ExecGroup | undefined;
  readonly #pipe: OutputPipe;
  readonly #log: OutputLog;
  #isTimedOut = false;
  #timers: NodeJS.Timeout[] = [];

  private constructor(
    command: ExecCommand,
    { value: child, group }: Started,
    pipe: OutputPipe,
    log: OutputLog,
    memoryKills: number | undefined,
  ) {
    this.#mark = command.mark;
    this.#folders = [command.cwd, command.environment.TMPDIR ?? command.cwd];
    this.#memoryKills = memoryKills;
    this.#child = child;
    this.#group = group;
    this.#pipe = pipe;
    this.#log = log;
    this.ended = this.#run(command.timeoutMs);
  }

  /**
   * Starts a command in a session of its own, and in a group of its own where there are any, with nothing on standard input. Throws `command_not_found`, `command_too_large`,
   * `exec_failed`; then nothing runs.
   */
  static async start(command: ExecCommand, log: OutputLog, stateFolder: string, groups?: ExecGroups): Promise<ExecProcess> {
    const pipe = await openOutputPipe(stateFolder, command.id, { user: command.user });
    const memoryKills = await readMemoryKills();
    const [program = '', ...rest] = command.argv;
    let exec: ExecProcess | undefined;
    try {
      const begin = (): ChildProcess =>
        spawn(program, rest, {
          cwd: command.cwd,
          env: command.environment,
          stdio: ['ignore', pipe.writer, pipe.writer],
          detached: true,
          ...command.user,
        });
      const begun = groups?.within(begin) ?? { value: begin(), group: undefined };
      const started = startOf(begun.value);
      // Made before the start is awaited, so that no end and no byte is missed.
      exec = new ExecProcess(command, begun, pipe, log, memoryKills);
      await started;
      if (command.user !== null && begun.value.pid !== undefined) await unspare(begun.value.pid);
      return exec;
    } catch (error) {
      pipe.reader.destroy();
      throw startError(program, error);
    } finally {
      pipe.closeWriter();
    }
  }

  /** Sends a signal to all that belongs to the exec. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null) signalProcess(-pid, signal);
    for (const marked of findMarked(this.#mark, EXEC_VARIABLE)) signalProcess(marked, signal);
    this.#group?.signal(signal);
  }

  async #run(timeoutMs: number): Promise<ExecEnd> {
    const { reader } = this.#pipe;
    let lastByteAt = performance.now();
    reader.on('data', (part: Buffer) => {
      lastByteAt = performance.now();
      this.#log.append(part);
    });
    const closed = new Promise<void>((resolve) => {
      reader.on('error', () => undefined).once('close', resolve);
    });
    const leader = await this.#leaderEnd(timeoutMs);
    for (const timer of this.#timers) clearTimeout(timer);
    await quietOrClosed(closed, () => lastByteAt);
    const survivors = await this.#killAll();
    await Promise.race([closed, wait(LAST_BYTES_MS)]);
    reader.destroy();
    this.#log.end();
    return this.#endOf(leader, survivors, await this.#shortages());
  }

  async #shortages(): Promise<Pick<ExecEnd, 'memoryKills' | 'diskRoomBytes'>> {
    const kills = await readMemoryKills();
    const room = await readDiskRoom(this.#folders);
    return {
      ...(kills === undefined || this.#memoryKills === undefined ? {} : { memoryKills: Math.max(0, kills - this.#memoryKills) }),
      ...(room === undefined ? {} : { diskRoomBytes: room }),
    };
  }

  #leaderEnd(timeoutMs: number): Promise<LeaderEnd> {
    return new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve({ code, signal }));
      this.#child.once('error', () => resolve({ code: null, signal: null }));
      this.#after(timeoutMs, () => {
        this.#isTimedOut = true;
        this.signal('SIGTERM');
        this.#after(KILL_GRACE_MS, () => {
          this.signal('SIGKILL');
          this.#after(KILL_WAIT_MS, () => resolve({ code: null, signal: null }));
        });
      });
    });
  }

  /** Kills what the leader left behind and gives how many there were. */
  async #killAll(): Promise<number> {
    const { pid } = this.#child;
    const found = [...findMarked(this.#mark, EXEC_VARIABLE), ...(this.#group?.pids() ?? [])];
    if (pid !== undefined) signalProcess(-pid, 'SIGKILL');
    const { killed } = await killMarked(this.#mark, { variable: EXEC_VARIABLE });
    await this.#group?.end();
    return new Set([...found, ...killed]).size;
  }

  #endOf(leader: LeaderEnd, survivors: number, shortages: Pick<ExecEnd, 'memoryKills' | 'diskRoomBytes'>): ExecEnd {
    const output = { outputBytes: this.#log.bytes, droppedBytes: this.#log.droppedBytes, survivors, ...shortages };
    if (this.#isTimedOut) return { kind: 'timed_out', exitCode: null, signal: leader.signal, ...output };
    if (leader.signal !== null) {
      return { kind: 'signalled', exitCode: 128 + constants.signals[leader.signal], signal: leader.signal, ...output };
    }
    return { kind: 'exited', exitCode: leader.code, signal: null, ...output };
  }

  #after(ms: number, run: () => void): void {
    this.#timers.push(setTimeout(run, ms));
  }
}

/** Waits until the output is closed or was quiet for a while, but not for ever: a child that writes on is killed next. */
async function quietOrClosed(closed: Promise<void>, lastByteAt: () => number): Promise<void> {
  const from = performance.now();
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
  });
  for (;;) {
    const now = performance.now();
    const left = Math.min(Math.max(lastByteAt(), from) + DRAIN_QUIET_MS - now, from + DRAIN_MAX_MS - now);
    if (left <= 0 || isClosed) return;
    await Promise.race([closed, wait(left)]);
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

function startOf(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

function startError(program: string, error: unknown): CodedError {
  const code = codeOf(error);
  const shown = JSON.stringify(program.slice(0, 200));
  if (code === 'ENOENT') return new CodedError('command_not_found', `there is no program ${shown}`, { cause: error });
  if (code === 'E2BIG') return new CodedError('command_too_large', 'arguments and environment together are too large', { cause: error });
  return new CodedError('exec_failed', `the program ${shown} could not be started (${code ?? 'error'})`, { cause: error });
}

import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { linesNaming, processesOf } from './processes.ts';

const FIRECREW = fileURLToPath(new URL('../../../bin/firecrew', import.meta.url));
/** A command that runs longer has hung. */
const COMMAND_TIMEOUT_MS = 600_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

/** What a command came to. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The `firecrew` command with a home of its own, as a person would type it in a checkout. */
export class Command {
  /** Everything of this test lies below; `home` is the home of the command. */
  readonly folder: string;
  readonly home: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #prefix: readonly string[];

  private constructor(folder: string, environment: NodeJS.ProcessEnv, prefix: readonly string[]) {
    this.folder = folder;
    this.#prefix = prefix;
    this.home = join(folder, 'home');
    // Whoever runs the tests may have a database of their own in the environment.
    const own = { FIRECREW_HOME: this.home, FIRECREW_DATABASE_URL: 'own', FIRECREW_ALLOW_UNISOLATED: '1' };
    this.#environment = { ...process.env, NO_COLOR: '1', ...own, ...environment };
  }

  /** `prefix` is what the command line begins with, for one that runs in other namespaces. */
  static async make(environment: NodeJS.ProcessEnv = {}, prefix: readonly string[] = []): Promise<Command> {
    const folder = await mkdtemp(join(tmpdir(), 'fcc-'));
    await chmod(folder, 0o711);
    await mkdir(join(folder, 'work'));
    return new Command(folder, environment, prefix);
  }

  /** Runs it to its end; its exit code is an answer. */
  async run(args: readonly string[], cwd = join(this.folder, 'work')): Promise<CommandResult> {
    return await this.start(args, cwd).ended;
  }

  /** Starts it, for a test that sends it signals. */
  start(args: readonly string[], cwd = join(this.folder, 'work')): { readonly pid: number; readonly ended: Promise<CommandResult> } {
    let pid = 0;
    const ended = new Promise<CommandResult>((resolve) => {
      const options = { cwd, env: this.#environment, timeout: COMMAND_TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES };
      const [program = FIRECREW, ...rest] = [...this.#prefix, FIRECREW, ...args];
      const child = execFile(program, rest, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      });
      child.stdin?.end();
      pid = child.pid ?? 0;
    });
    return { pid, ended };
  }

  /** The JSON that a command prints as its only or last line. */
  async json(args: readonly string[], cwd?: string): Promise<Record<string, unknown>> {
    const { stdout, stderr, code } = await this.run([...args, '--json'], cwd);
    const lines = stdout.trim().split('\n');
    try {
      return JSON.parse(lines.length > 1 && !stdout.trimStart().startsWith('{\n') ? (lines.at(-1) ?? '') : stdout) as Record<
        string,
        unknown
      >;
    } catch {
      throw new Error(`firecrew ${args.join(' ')} (exit ${code}) printed no JSON:\n${stdout}\n${stderr}`);
    }
  }

  /** The end of a log of the home, for a failure's message. */
  async log(name: string): Promise<string> {
    return (await readFile(join(this.home, 'logs', name), 'utf8').catch(() => '')).slice(-4000);
  }

  /** Ends every process of the home and removes it; throws when anything is left. */
  async stop(): Promise<void> {
    const down = await this.run(['down', '--force']);
    const left = processesOf(this.home).map(({ pid, command }) => `process ${pid}: ${command.slice(0, 200)}`);
    for (const { pid } of processesOf(this.home)) process.kill(pid, 'SIGKILL');
    for (const file of ['/proc/net/unix', '/proc/self/mountinfo'] as const) left.push(...linesNaming(file, this.home));
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    if (down.code !== 0 || left.length > 0)
      throw new Error(`firecrew down (exit ${down.code}) left:\n${left.join('\n')}\n${down.stdout}${down.stderr}`);
  }
}

import { execFileSync, spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { type Gate, HOOK_CONFIG, type HookAnswer, planHookFiles, readHookOutcome, stopHookScript, tapHookScript } from '../src/index.ts';

/** Tools of the scripts, then those of the checks in the tests, that busybox has as well; git is nobody's but its own. */
const BUSYBOX_TOOLS = ['sh', 'tr', 'cat', 'od', 'awk', 'timeout', 'head', 'tail', 'date', 'rm', 'dd', 'true', 'false', 'sleep', 'touch'];

/** A shell that may run the scripts of the guest. */
export interface Shell {
  readonly name: string;
  readonly path: string | undefined;
  readonly call: readonly string[];
  /** Only these tools stand in the PATH, as links to this program. */
  readonly tools?: string;
}

function find(name: string): string | undefined {
  const found = (process.env.PATH ?? '').split(':').find((folder) => folder !== '' && isProgram(join(folder, name)));
  return found === undefined ? undefined : join(found, name);
}

/** A name that is there and cannot be run is no program. */
function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

const busybox = find('busybox');
/** The shells that images have as /bin/sh; one that is not installed has no path. */
const SHELLS: readonly Shell[] = [
  { name: 'dash', path: find('dash'), call: [] },
  { name: 'bash', path: find('bash'), call: [] },
  { name: 'busybox', path: busybox, call: ['sh'], ...(busybox === undefined ? {} : { tools: busybox }) },
];

/** Describes something under each shell; one that is not installed is skipped by name. */
export function describeUnderShells(what: string, tests: (shell: Shell) => void): void {
  describe.each(SHELLS)(`${what} under $name`, (shell) => {
    if (shell.path === undefined) it.skip(`is not run: ${shell.name} is not installed`, () => {});
    else tests(shell);
  });
}

/** What one call of the Stop hook came to. */
export interface Stop {
  readonly status: number | null;
  readonly reason: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** A repository with one commit, and the hooks of a guest beside it. */
export class HookHome {
  readonly folder: string;
  readonly repo: string;
  readonly baseCommit: string;
  readonly #shell: Shell;
  readonly #path: string;

  constructor(shell: Shell) {
    this.#shell = shell;
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'firecrew-hook-')));
    this.repo = join(this.folder, 'repo');
    for (const name of ['repo', 'config', 'state', 'bin']) mkdirSync(join(this.folder, name));
    this.git('init', '-q');
    this.write('a.txt', 'a\n');
    this.git('add', '.');
    this.git('commit', '-q', '-m', 'base');
    this.baseCommit = this.git('rev-parse', 'HEAD');
    writeFileSync(this.at('stop-hook'), stopHookScript());
    writeFileSync(this.at('tap-hook'), tapHookScript());
    this.#path = shell.tools === undefined ? (process.env.PATH ?? '') : this.#linkTools(shell.tools);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  at(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.repo, name), text);
  }

  git(...args: string[]): string {
    const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.invalid'];
    return execFileSync('git', ['-C', this.repo, ...identity, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  }

  install(gate: Gate, options: { base?: boolean; answer?: HookAnswer; checkTimeoutS?: number } = {}): void {
    const { base = true, ...rest } = options;
    for (const file of planHookFiles({ gate, workspace: this.repo, ...rest, ...(base ? { baseCommit: this.baseCommit } : {}) }))
      writeFileSync(this.at('config', file.name), file.text);
  }

  /** Overwrites one file of the configuration, as only the host could. */
  configure(name: keyof typeof HOOK_CONFIG, text: string): void {
    writeFileSync(this.at('config', HOOK_CONFIG[name]), text);
  }

  /** The PATH of the scripts with this program before all others. */
  pathWith(name: string, script: string): string {
    const folder = this.at('before');
    mkdirSync(folder);
    writeFileSync(join(folder, name), script, { mode: 0o755 });
    return `${folder}:${this.#path}`;
  }

  stop(event: unknown = { hook_event_name: 'Stop', background_tasks: [] }, env: Readonly<Record<string, string>> = {}): Stop {
    const run = this.run([this.at('stop-hook'), this.at('config'), this.at('state')], JSON.stringify(event), env);
    const answer: unknown = run.status === 0 && run.stdout !== '' ? JSON.parse(run.stdout) : undefined;
    const blocks = typeof answer === 'object' && answer !== null && 'decision' in answer && answer.decision === 'block';
    return { ...run, reason: blocks && 'reason' in answer ? String(answer.reason) : undefined };
  }

  tap(input: string, file = this.at('tap.jsonl')): { status: number | null; stdout: string; stderr: string } {
    return this.run([this.at('tap-hook'), file], input);
  }

  outcome() {
    const log = this.at('state', 'log');
    return readHookOutcome({ log: existsSync(log) ? readFileSync(log) : undefined, capped: existsSync(this.at('state', 'capped')) });
  }

  run(args: readonly string[], input: string, env: Readonly<Record<string, string>> = {}) {
    const { path = '/bin/sh', call } = this.#shell;
    const run = spawnSync(path, [...call, ...args], {
      input,
      env: { PATH: this.#path, HOME: this.folder, LANG: 'C.UTF-8', ...env },
      encoding: 'utf8',
      cwd: this.folder,
    });
    return { status: run.status, stdout: run.stdout, stderr: run.stderr };
  }

  #linkTools(program: string): string {
    for (const tool of BUSYBOX_TOOLS) symlinkSync(program, this.at('bin', tool));
    const git = find('git');
    if (git !== undefined) symlinkSync(git, this.at('bin', 'git'));
    return this.at('bin');
  }
}

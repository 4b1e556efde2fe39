import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError, codeOf } from '@firecrew/base';
import { configArguments, fixedEnvironment, type GitConfigEntry, type GitProtocol, userEnvironment } from './git-settings.ts';
import { clampBothEnds, redactGitText } from './git-text.ts';

/** Time of a call that reads or writes on this machine. */
export const GIT_LOCAL_TIMEOUT_MS = 120_000;
/** Time of a call that moves packs. */
export const GIT_PACK_TIMEOUT_MS = 900_000;
/** Time of a call that speaks to a remote and moves little. */
export const GIT_REMOTE_TIMEOUT_MS = 60_000;
/** Output of a call that names a few things. */
export const GIT_SMALL_OUTPUT_BYTES = 1024 * 1024;
/** Output of a call that lists a whole tree. */
export const GIT_LISTING_MAX_BYTES = 512 * 1024 * 1024;
/** Standard error that is kept of each end. */
const STDERR_END_BYTES = 16 * 1024;
/** How long pipes may stay open after git has ended, in the hands of what it started. */
const DRAIN_MS = 2_000;

/** Where one call of git works, what it may use, and its bounds. */
export interface GitOptions {
  readonly gitDir?: string;
  readonly workTree?: string;
  readonly indexFile?: string;
  readonly objectDirectory?: string;
  readonly cwd?: string;
  readonly input?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Standard output goes to this new file and not into memory. */
  readonly outFile?: string;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** `truncate` keeps the head and ends git. */
  readonly onTooMuchOutput?: 'fail' | 'truncate';
  /** Exit codes that are answers; 0 alone by default. */
  readonly exitCodes?: readonly number[];
  readonly config?: readonly GitConfigEntry[];
  /** Added to the environment, over everything else. */
  readonly env?: Readonly<Record<string, string>>;
  /** Transports this call may use; none by default. */
  readonly protocols?: readonly GitProtocol[];
  /** The person's environment: their own configuration is used, hooks, file monitors and prompts are off all the same. */
  readonly userEnv?: Readonly<Record<string, string | undefined>>;
  /** Texts that never enter an error. */
  readonly secrets?: readonly string[];
  readonly signal?: AbortSignal;
}

/** What git answered: bytes, its exit code, and its prose (redacted, both ends kept). */
export interface GitResult {
  readonly stdout: Buffer;
  readonly exitCode: number;
  readonly stderr: string;
  readonly truncated: boolean;
}

type Ending = 'timeout' | 'too_much_output' | 'cancelled' | 'input_failed';

/**
 * Runs git with a fixed safe configuration. The caller puts `--` before operands. Its process group is killed when a bound is passed.
 * Throws CodedError `git_failed`, `git_timed_out`, `git_output_too_large`, `git_cancelled`, `git_not_found`; an error of `input` is thrown as it is.
 */
export async function runGit(args: readonly string[], options: GitOptions): Promise<GitResult> {
  options.signal?.throwIfAborted();
  const out = options.outFile === undefined ? undefined : await open(options.outFile, 'wx', 0o600);
  try {
    const child = start(args, options, out?.fd);
    return await follow(child, args, options);
  } finally {
    await out?.close();
  }
}

function start(args: readonly string[], options: GitOptions, outFd: number | undefined): ChildProcess {
  const fixed = options.userEnv === undefined;
  const base = fixed
    ? fixedEnvironment(process.env.PATH ?? '/usr/bin:/bin', options.protocols ?? [])
    : userEnvironment(options.userEnv ?? {});
  const place: Record<string, string> = {};
  if (options.gitDir !== undefined) place.GIT_DIR = options.gitDir;
  if (options.workTree !== undefined) place.GIT_WORK_TREE = options.workTree;
  if (options.indexFile !== undefined) place.GIT_INDEX_FILE = options.indexFile;
  if (options.objectDirectory !== undefined) place.GIT_OBJECT_DIRECTORY = options.objectDirectory;
  return spawn('git', [...configArguments(fixed ? 'fixed' : 'user', options.config), ...args], {
    cwd: options.cwd ?? options.workTree ?? options.gitDir ?? '/',
    env: { ...base, ...place, ...options.env },
    stdio: [options.input === undefined ? 'ignore' : 'pipe', outFd ?? 'pipe', 'pipe'],
    // A session of its own: no terminal to prompt on, and one group to kill.
    detached: true,
  });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group is gone.
  }
}

async function feed(child: ChildProcess, input: GitOptions['input'], fail: (error: unknown) => void): Promise<void> {
  const stdin = child.stdin;
  if (input === undefined || stdin === null) return;
  let sourceError: { error: unknown } | undefined;
  // An error that the pipe throws into this generator is not one of the source, so `yield*` would not do.
  async function* source(): AsyncGenerator<Uint8Array> {
    if (input instanceof Uint8Array) return yield input;
    const chunks = input?.[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await chunks?.next().catch((error: unknown) => {
          sourceError = { error };
          throw error;
        });
        if (next === undefined || next.done === true) return;
        yield next.value;
      }
    } finally {
      await chunks?.return?.();
    }
  }
  try {
    await pipeline(Readable.from(source(), { objectMode: false }), stdin);
  } catch {
    // A pipe that git closed early is explained by its exit code; an error of the source is the caller's.
    if (sourceError !== undefined) fail(sourceError.error);
  }
}

function collectStderr(child: ChildProcess): () => string {
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);
  let dropped = 0;
  child.stderr?.on('data', (chunk: Buffer) => {
    const room = STDERR_END_BYTES - head.length;
    if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)]);
    const rest = Buffer.concat([tail, chunk.subarray(Math.max(0, room))]);
    dropped += Math.max(0, rest.length - STDERR_END_BYTES);
    tail = rest.subarray(Math.max(0, rest.length - STDERR_END_BYTES));
  });
  return () => `${head.toString('utf8')}${dropped > 0 ? '\n...\n' : ''}${tail.toString('utf8')}`;
}

function follow(child: ChildProcess, args: readonly string[], options: GitOptions): Promise<GitResult> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let ending: Ending | undefined;
    let inputError: unknown;
    const stderrText = collectStderr(child);
    const end = (why: Ending): void => {
      ending ??= why;
      killGroup(child);
    };
    child.stdout?.on('data', (chunk: Buffer) => {
      const room = options.maxOutputBytes - bytes;
      if (room > 0) chunks.push(chunk.subarray(0, room));
      bytes += chunk.length;
      if (bytes > options.maxOutputBytes) end('too_much_output');
    });
    const timer = setTimeout(() => end('timeout'), options.timeoutMs);
    const onAbort = (): void => end('cancelled');
    options.signal?.addEventListener('abort', onAbort, { once: true });
    let drain: NodeJS.Timeout | undefined;
    child.once('exit', () => {
      drain = setTimeout(() => {
        killGroup(child);
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, DRAIN_MS);
    });
    const settle = (): void => {
      clearTimeout(timer);
      clearTimeout(drain);
      options.signal?.removeEventListener('abort', onAbort);
    };
    child.once('error', (error) => {
      settle();
      reject(notStarted(error));
    });
    child.once('close', (code, signal) => {
      settle();
      const stderr = clampBothEnds(redactGitText(stderrText(), options.secrets));
      if (ending === 'input_failed') reject(inputError);
      else if (ending === 'too_much_output' && options.onTooMuchOutput === 'truncate') {
        resolve({ stdout: Buffer.concat(chunks), exitCode: code ?? 0, stderr, truncated: true });
      } else {
        const failure = failureOf(args, options, { ending, code, signal, stderr });
        if (failure !== undefined) reject(failure);
        else resolve({ stdout: Buffer.concat(chunks), exitCode: code ?? 0, stderr, truncated: false });
      }
    });
    void feed(child, options.input, (error) => {
      inputError = error;
      end('input_failed');
    });
  });
}

function notStarted(error: Error): CodedError {
  const code = codeOf(error) === 'ENOENT' ? 'git_not_found' : 'git_failed';
  return new CodedError(code, 'git could not be started', { action: 'Install git 2.31 or newer and put it on the PATH.', cause: error });
}

interface Ended {
  readonly ending: Ending | undefined;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

function failureOf(args: readonly string[], options: GitOptions, ended: Ended): CodedError | undefined {
  const command = `git ${args.find((part) => !part.startsWith('-')) ?? ''}`.trim();
  const said = ended.stderr === '' ? '' : `: ${ended.stderr}`;
  if (ended.ending === 'timeout') return new CodedError('git_timed_out', `${command} was ended after ${options.timeoutMs} ms${said}`);
  if (ended.ending === 'cancelled') return new CodedError('git_cancelled', `${command} was cancelled`);
  if (ended.ending === 'too_much_output') {
    return new CodedError('git_output_too_large', `${command} printed more than ${options.maxOutputBytes} bytes`);
  }
  if (ended.code !== null && (options.exitCodes ?? [0]).includes(ended.code)) return undefined;
  const how = ended.code === null ? `was ended by ${ended.signal ?? 'a signal'}` : `failed with exit code ${ended.code}`;
  return new CodedError('git_failed', `${command} ${how}${said}`);
}

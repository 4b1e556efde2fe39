import { type ChildProcess, spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';

/** Standard error that is kept of a tool, its end. */
const STDERR_KEPT_CHARS = 4_000;
/** Time that a tool has to end when it is told to, in `ms`. */
const STOP_GRACE_MS = 5_000;
/** Output of a tool that is read as text. */
const MAX_PRINTED_BYTES = 1024 * 1024;

/** A program of this machine, and the packages that bring it. */
export interface Tool {
  readonly command: string;
  /** Packages of Debian that hold it, for the sentence that says what to do. */
  readonly packages: string;
}

/** The programs that building needs; each step names the one it is without. */
export const TOOLS = {
  tar2sqfs: { command: 'tar2sqfs', packages: 'squashfs-tools-ng' },
  tar: { command: 'tar', packages: 'tar' },
  mmdebstrap: { command: 'mmdebstrap', packages: 'mmdebstrap' },
  mke2fs: { command: 'mke2fs', packages: 'e2fsprogs' },
  xz: { command: 'xz', packages: 'xz-utils' },
  npm: { command: 'npm', packages: 'npm' },
} as const satisfies Readonly<Record<string, Tool>>;

/** One call of a tool. */
export interface ToolCall {
  readonly tool: Tool;
  readonly args: readonly string[];
  readonly input?: AsyncIterable<Uint8Array> | undefined;
  /** Takes standard output while the tool runs; without it there is none. */
  readonly output?: ((stream: Readable) => Promise<void>) | undefined;
  /** Environment besides PATH and the locale. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a tool to its end, in a process group of its own that is ended when the call is aborted or a side of it fails.
 * Throws `tool_missing`, `tool_failed`; an error of `input` or `output` is thrown as it is.
 */
export async function runTool(call: ToolCall): Promise<void> {
  call.signal?.throwIfAborted();
  const child = spawn(call.tool.command, [...call.args], {
    cwd: call.cwd ?? '/',
    env: { PATH: searchPath(), LC_ALL: 'C.UTF-8', ...call.env },
    stdio: [call.input === undefined ? 'ignore' : 'pipe', call.output === undefined ? 'ignore' : 'pipe', 'pipe'],
    detached: true,
  });
  const ended = endOf(child, call.tool);
  let late: NodeJS.Timeout | undefined;
  // What installs a system has mounts to take away.
  const stop = (): void => {
    signalGroup(child, 'SIGTERM');
    late ??= setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_GRACE_MS);
  };
  call.signal?.addEventListener('abort', stop);
  try {
    const sides = [feed(child, call.input), drain(child, call.output)].map(async (side) => {
      try {
        await side;
      } catch (error) {
        stop();
        throw error;
      }
    });
    const results = await Promise.allSettled([ended, ...sides]);
    call.signal?.throwIfAborted();
    const [own, ...ofSides] = results;
    const failed = ofSides.find((one) => one.status === 'rejected') ?? own;
    if (failed?.status === 'rejected') throw failed.reason;
  } finally {
    call.signal?.removeEventListener('abort', stop);
    clearTimeout(late);
  }
}

/** What a tool prints, as text of at most 1 MiB. Throws `tool_missing`, `tool_failed`. */
export async function readToolOutput(tool: Tool, args: readonly string[], signal?: AbortSignal): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  const output = async (stream: Readable): Promise<void> => {
    for await (const part of stream as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > MAX_PRINTED_BYTES) throw failed(tool, `it printed more than ${MAX_PRINTED_BYTES} bytes`);
      parts.push(part);
    }
  };
  await runTool({ tool, args, output, signal });
  return Buffer.concat(parts).toString();
}

/** Whether a tool is on this machine. */
export async function hasTool(tool: Tool): Promise<boolean> {
  return await new Promise((resolve) => {
    const child = spawn(tool.command, ['--version'], { env: { PATH: searchPath() }, stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('close', () => resolve(true));
  });
}

/** Tools for file systems lie in folders that are not on the PATH of everybody. */
function searchPath(): string {
  return `${process.env.FIRECREW_CALLER_PATH ?? process.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;
}

async function endOf(child: ChildProcess, tool: Tool): Promise<void> {
  let stderr = '';
  child.stderr?.on('data', (part: Buffer) => {
    stderr = (stderr + part.toString()).slice(-STDERR_KEPT_CHARS);
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', (error) => reject(codeOf(error) === 'ENOENT' ? missing(tool) : failed(tool, messageOf(error))));
    child.once('close', (code, signal) => {
      if (code === 0) resolve();
      else reject(failed(tool, `${signal ?? `exit status ${code}`}${stderr === '' ? '' : `: ${stderr.trim()}`}`));
    });
  });
}

async function feed(child: ChildProcess, input: ToolCall['input']): Promise<void> {
  if (input === undefined || child.stdin === null) return;
  let ofSource: { readonly error: unknown } | undefined;
  async function* source(from: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const iterator = from[Symbol.asyncIterator]();
    try {
      for (;;) {
        // A failure at `yield` is one of the tool's end, which the stream hands back to its source.
        const next = await iterator.next().catch((error: unknown) => {
          ofSource = { error };
          throw error;
        });
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  try {
    await pipeline(Readable.from(source(input), { objectMode: false }), child.stdin);
  } catch (error) {
    if (ofSource !== undefined) throw ofSource.error;
    // The tool closed its input: its exit status says why.
    if (codeOf(error) !== 'EPIPE' && codeOf(error) !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

async function drain(child: ChildProcess, output: ToolCall['output']): Promise<void> {
  if (output !== undefined && child.stdout !== null) await output(child.stdout);
}

function signalGroup(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // It has ended.
  }
}

function missing({ command, packages }: Tool): CodedError {
  return new CodedError('tool_missing', `the program ${command} is not on this machine`, {
    id: command,
    action: `Install it: apt-get install ${packages}`,
  });
}

function failed({ command }: Tool, why: string): CodedError {
  return new CodedError('tool_failed', `${command} failed: ${why}`, {
    id: command,
    action: 'Mend what it says, and try again; often the disk is full.',
  });
}

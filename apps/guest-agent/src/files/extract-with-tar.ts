import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { CodedError, codeOf } from '@firecrew/base';
import { type RelayedArchive, relayArchive } from '@firecrew/workspace';
import { ATTEMPT_VARIABLE } from '../exec/exec-environment.ts';

/** Where a system keeps its tar. A search path could lead into the tree, so none is used. */
const TAR_PROGRAMS = ['/usr/bin/tar', '/bin/tar', '/usr/local/bin/gtar'];
const PROBE_MS = 5_000;
const TREE_MODE = 0o755;
/** Characters of what tar said that an error repeats. */
const MAX_SAID = 300;
/**
 * Modes are those of the archive, as with the own codec; owner and times are not. `umask` is for folders that the archive does not name.
 * One record is read at a time, whatever pieces the pipe gives.
 */
const EXTRACT = ['-x', '-B', '-b', '128', '--no-same-owner', '--same-permissions', '--touch', '-f', '-', '-C'];
const SHELL_LINE = 'umask 022 && exec "$0" "$@"';

/** The path of a GNU tar in this guest; undefined when there is none. */
export async function findGnuTar(programs: readonly string[] = TAR_PROGRAMS): Promise<string | undefined> {
  for (const program of programs) if (await isGnuTar(program)) return program;
  return undefined;
}

function isGnuTar(program: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { env: tarEnvironment(), timeout: PROBE_MS, maxBuffer: 64 * 1024 };
    execFile(program, ['--version'], options, (error, stdout) => resolve(error === null && stdout.startsWith('tar (GNU tar)')));
  });
}

/**
 * Lets a GNU tar of the guest extract an archive into an empty folder. The archive is read here too: it stays within the limits, and a
 * cut or damaged one fails.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`.
 */
export async function extractWithTar(
  program: string,
  stream: AsyncIterable<Uint8Array>,
  folder: string,
  limits: { readonly maxTotalBytes: number; readonly maxFileBytes: number },
): Promise<RelayedArchive> {
  await chmod(folder, TREE_MODE);
  const tar = new RunningTar(spawn('/bin/sh', ['-c', SHELL_LINE, program, ...EXTRACT, folder], { cwd: '/', env: tarEnvironment() }));
  try {
    const archive = await relayArchive(stream, (chunk) => tar.write(chunk), limits);
    await tar.finish();
    return archive;
  } finally {
    await tar.stop();
  }
}

function tarEnvironment(): Record<string, string> {
  // With the mark of the attempt, so that whoever ends the attempt finds it.
  const mark = process.env[ATTEMPT_VARIABLE];
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', ...(mark === undefined ? {} : { [ATTEMPT_VARIABLE]: mark }) };
}

class RunningTar {
  readonly #child: ChildProcess;
  readonly #input: Writable;
  readonly #ended: Promise<string | undefined>;
  #said = '';
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(child: ChildProcess & { readonly stdin: Writable }) {
    this.#child = child;
    this.#input = child.stdin;
    // What an early end of tar means is told by how it ended.
    this.#input.on('error', () => undefined);
    child.stdout?.resume();
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(0, MAX_SAID);
    });
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(`it could not be started (${codeOf(error) ?? 'error'})`));
      child.once('close', (code, signal) => resolve(code === 0 ? undefined : `it ended with ${code ?? signal}: ${this.#said.trim()}`));
    });
    this.#input.on('drain', () => this.#wake?.()).on('close', () => this.#wake?.());
    void this.#ended.then(() => {
      this.#isOver = true;
      this.#wake?.();
    });
  }

  /** Settles when tar has room for more. */
  async write(chunk: Uint8Array): Promise<void> {
    if (!this.#isOver && this.#input.writable && this.#input.write(chunk)) return;
    if (!this.#isOver && this.#input.writable) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#isOver || !this.#input.writable) await this.#check();
  }

  /** Settles when tar has stored all. */
  async finish(): Promise<void> {
    this.#input.end();
    await this.#check();
  }

  /** Kills a tar that still runs, and waits for its end: nothing writes in the folder afterwards. */
  async stop(): Promise<void> {
    if (!this.#isOver) this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #check(): Promise<void> {
    const failure = await this.#ended;
    if (failure === undefined) return;
    throw new CodedError('unpack_failed', `tar could not store the tree: ${failure}`, {
      action: 'Nothing was changed. Check the room and the rights on the disk.',
    });
  }
}

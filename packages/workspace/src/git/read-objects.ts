import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { malformed } from './git-records.ts';
import { GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';

/** One object; its content must be read to the end before the next is asked for. */
export interface ReadObject {
  readonly sha: string;
  readonly size: number;
  readonly content: AsyncIterable<Buffer>;
}

const HEADER = /^([0-9a-f]+) blob (\d{1,15})$/;
/** Longest header line of `cat-file --batch`, in bytes. */
const HEADER_MAX_BYTES = 200;

/** The contents of blobs in the order of `shas`, in bounded memory. Throws CodedError `git_answer_malformed` and those of `runGit`. */
export async function* readObjects(gitDir: string, shas: readonly string[]): AsyncGenerator<ReadObject> {
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-objects-'));
  try {
    const outFile = join(folder, 'objects');
    const input = Buffer.from(shas.map((sha) => `${sha}\n`).join(''));
    await runGit(['cat-file', '--batch'], {
      gitDir,
      input,
      outFile,
      timeoutMs: GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
    const bytes = new ByteReader(createReadStream(outFile));
    for (const sha of shas) {
      const [, found, size] = HEADER.exec(await bytes.line(HEADER_MAX_BYTES)) ?? [];
      if (found !== sha || size === undefined) throw malformed('an object of cat-file is not the one that was asked for');
      yield { sha, size: Number(size), content: bytes.take(Number(size)) };
      await bytes.line(1);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Lines and counted bytes of one stream, read by a single buffer. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async line(max: number): Promise<string> {
    let end = this.#held.indexOf(0x0a);
    while (end < 0 && this.#held.length <= max && (await this.#fill())) end = this.#held.indexOf(0x0a);
    if (end < 0 || end > max) throw malformed('a header of cat-file is not well-formed');
    const line = this.#held.toString('latin1', 0, end);
    this.#held = this.#held.subarray(end + 1);
    return line;
  }

  async *take(size: number): AsyncGenerator<Buffer> {
    let left = size;
    while (left > 0) {
      if (this.#held.length === 0 && !(await this.#fill())) throw malformed('an object of cat-file is cut off');
      const part = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }

  async #fill(): Promise<boolean> {
    const next = await this.#source.next();
    if (next.done === true) return false;
    this.#held = this.#held.length === 0 ? next.value : Buffer.concat([this.#held, next.value]);
    return true;
  }
}

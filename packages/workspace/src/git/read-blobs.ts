import { malformed } from './git-records.ts';
import { GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';

/** Bytes of all rule files of a commit (ignore and attribute files) together. */
export const RULE_FILES_MAX_BYTES = 16 * 1024 * 1024;

/** The content of blobs, in order. Throws CodedError `git_answer_malformed`, `git_output_too_large`. */
export async function readBlobs(gitDir: string, shas: readonly string[]): Promise<Buffer[]> {
  const { stdout } = await runGit(['cat-file', '--batch'], {
    gitDir,
    input: Buffer.from(shas.map((sha) => `${sha}\n`).join('')),
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: RULE_FILES_MAX_BYTES,
  });
  const contents: Buffer[] = [];
  let at = 0;
  for (const sha of shas) {
    const line = stdout.indexOf(0x0a, at);
    const [, name, size] = /^([0-9a-f]+) blob ([0-9]+)$/.exec(stdout.subarray(at, line).toString('latin1')) ?? [];
    if (name !== sha || size === undefined) throw malformed('cat-file did not give a blob that was asked for');
    contents.push(stdout.subarray(line + 1, line + 1 + Number(size)));
    at = line + 1 + Number(size) + 1;
  }
  return contents;
}

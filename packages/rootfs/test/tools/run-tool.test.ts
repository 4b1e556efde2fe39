import { readFileSync } from 'node:fs';
import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { hasTool, readToolOutput, runTool } from '../../src/tools/run-tool.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
const sh = { command: 'sh', packages: 'dash' };

async function* parts(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // A process that has ended and was not waited for is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

describe('a tool', () => {
  it('gets its input and gives its output', async () => {
    let text = '';
    await runTool({
      tool: sh,
      args: ['-c', 'cat; echo "$EXTRA"'],
      input: parts('a', 'b'),
      output: async (stream) => {
        for await (const part of stream) text += String(part);
      },
      env: { EXTRA: 'c' },
    });
    expect(text).toBe('abc\n');
  });

  it('that is missing is named with the package that brings it', async () => {
    const missing = { command: 'no-such-tool-here', packages: 'a-package' };
    expect(await hasTool(missing)).toBe(false);
    expect(await hasTool({ command: 'true', packages: 'coreutils' })).toBe(true);
    await expect(runTool({ tool: missing, args: [] })).rejects.toMatchObject({
      code: 'tool_missing',
      action: 'Install it: apt-get install a-package',
    });
  });

  it('that fails says how, in its own words', async () => {
    await expect(runTool({ tool: sh, args: ['-c', 'echo "disk is full" >&2; exit 7'] })).rejects.toMatchObject({
      code: 'tool_failed',
      message: 'sh failed: exit status 7: disk is full',
    });
    await expect(runTool({ tool: sh, args: ['-c', 'kill -9 $$'] })).rejects.toThrow('SIGKILL');
  });

  it('that stops reading is judged by its exit status', async () => {
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(65_536);
    }
    await runTool({ tool: sh, args: ['-c', 'head -c 10 >/dev/null'], input: endless() });
    expect(await runTool({ tool: sh, args: ['-c', 'head -c 10 >/dev/null; exit 3'], input: endless() }).catch(codeOf)).toBe('tool_failed');
  });

  it('is ended when its input or its output fails, and that failure is told', async () => {
    async function* failing(): AsyncGenerator<Buffer> {
      yield Buffer.from('a');
      throw new Error('the source broke');
    }
    await expect(runTool({ tool: sh, args: ['-c', 'cat >/dev/null; sleep 60'], input: failing() })).rejects.toThrow('the source broke');
    const output = async (): Promise<void> => {
      throw new Error('the target broke');
    };
    await expect(runTool({ tool: sh, args: ['-c', 'echo a; sleep 60'], output })).rejects.toThrow('the target broke');
  });

  it('that is given up ends with all it started, also when it does not want to', async () => {
    const abort = new AbortController();
    const script = `trap '' TERM; sleep 60 & echo $$ $! > ${at('pids')}; echo; wait; sleep 60`;
    const output = async (stream: AsyncIterable<unknown>): Promise<void> => {
      for await (const _part of stream) abort.abort(new Error('no longer wanted'));
    };
    await expect(runTool({ tool: sh, args: ['-c', script], output, signal: abort.signal })).rejects.toThrow('no longer wanted');
    // What was killed and has no parent is gone when the first process of the machine has looked after it.
    for (const pid of readFileSync(at('pids'), 'utf8').trim().split(' '))
      await expect.poll(() => isAlive(Number(pid)), { message: pid }).toBe(false);
  });

  it('has a bound on what is read of it as text', async () => {
    expect(await readToolOutput(sh, ['-c', 'echo hello'])).toBe('hello\n');
    expect(await readToolOutput(sh, ['-c', 'head -c 2000000 /dev/zero']).catch(codeOf)).toBe('tool_failed');
  });

  it('gets nothing of this environment but where programs are', async () => {
    process.env.SECRET_OF_TEST = 'x';
    const text = await readToolOutput(sh, ['-c', 'env']);
    delete process.env.SECRET_OF_TEST;
    expect(text).toContain('LC_ALL=C.UTF-8');
    expect(text).not.toContain('SECRET_OF_TEST');
  });
});

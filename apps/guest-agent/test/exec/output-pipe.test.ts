import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openOutputPipe } from '../../src/exec/output-pipe.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-pipe-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const SCRIPT = 'i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done; head -c 500000 /dev/zero | tr "\\0" x';

describe('the pipe of an exec', () => {
  it.each([
    { what: 'a FIFO', mkfifo: undefined },
    { what: 'two sockets where there is no mkfifo', mkfifo: '/no/such/mkfifo' },
  ])('$what keeps the order of both outputs and every byte, and leaves no file', async ({ mkfifo }) => {
    const pipe = await openOutputPipe(folder, 'one', mkfifo === undefined ? {} : { mkfifo });
    const child = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['ignore', pipe.writer, pipe.writer] });
    pipe.closeWriter();
    const output = await text(pipe.reader);
    expect(child.exitCode ?? 0).toBe(0);
    const lines = Array.from({ length: 200 }, (_, at) => `out ${at}\nerr ${at}\n`).join('');
    expect(output).toBe(lines + 'x'.repeat(500_000));
    expect(await readdir(folder)).toEqual([]);
  });

  it('a FIFO can be opened again as the standard error', async () => {
    const pipe = await openOutputPipe(folder, 'one');
    spawn('/bin/sh', ['-c', 'echo told > /dev/stderr'], { stdio: ['ignore', pipe.writer, pipe.writer] });
    pipe.closeWriter();
    expect(await text(pipe.reader)).toBe('told\n');
  });
});

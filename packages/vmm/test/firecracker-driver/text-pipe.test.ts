import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TextPipe } from '../../src/firecracker-driver/text-pipe.ts';
import { CONSOLE_TAIL_BYTES } from '../../src/machine/console-tail.ts';
import { until } from '../../src/testing/driver-rig.ts';

let folder = '';
const pipes: TextPipe[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-pipe-'));
});
afterEach(async () => {
  for (const pipe of pipes.splice(0)) pipe.close();
  await rm(folder, { recursive: true, force: true });
});

async function openPipe(): Promise<{ pipe: TextPipe; path: string }> {
  const path = join(folder, 'console');
  const [pipe] = await TextPipe.open([path], undefined);
  if (pipe === undefined) throw new Error('no pipe');
  pipes.push(pipe);
  return { pipe, path };
}

/** Opens it as a VMM does. */
const openWriter = (path: string): number => openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK);

describe('the pipe for a text of a VMM', () => {
  it('keeps the end of what is written, by one writer after another', async () => {
    const { pipe, path } = await openPipe();
    for (const line of ['first', 'second']) {
      const writer = openWriter(path);
      writeSync(writer, `${line}\n`);
      closeSync(writer);
      await until('it was read', () => pipe.tail.lines(9).includes(line));
    }
    expect(pipe.tail.lines(9)).toEqual(['first', 'second']);
  });

  it('gives what a writer left right before it went', async () => {
    const { pipe, path } = await openPipe();
    const writer = openWriter(path);
    writeSync(writer, 'last words\n');
    closeSync(writer);
    pipe.drain();
    expect(pipe.tail.lines(1)).toEqual(['last words']);
    pipe.drain();
    expect(pipe.tail.lines(9)).toEqual(['last words']);
  });

  it('is bounded, and lets no writer wait for it', async () => {
    const { pipe, path } = await openPipe();
    const writer = openWriter(path);
    let full = 0;
    // Nobody reads meanwhile: this turn of the event loop belongs to the writer.
    for (let count = 0; count < 100; count += 1) {
      try {
        writeSync(writer, 'x'.repeat(4096));
      } catch (error) {
        expect(error).toMatchObject({ code: 'EAGAIN' });
        full += 1;
      }
    }
    closeSync(writer);
    expect(full).toBeGreaterThan(0);
    pipe.drain();
    expect(pipe.tail.text().length).toBeLessThanOrEqual(CONSOLE_TAIL_BYTES);
  });

  it("is its user's alone", async () => {
    const { path } = await openPipe();
    const { mode } = await stat(path);
    expect([(mode & constants.S_IFMT) === constants.S_IFIFO, mode & 0o777]).toEqual([true, 0o600]);
  });

  it('is not made where something is in its place', async () => {
    const { path } = await openPipe();
    await expect(TextPipe.open([path], undefined)).rejects.toMatchObject({
      code: 'pipe_failed',
      message: expect.stringContaining('File exists'),
    });
  });
});

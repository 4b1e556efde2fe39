import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutputLog } from '../../src/exec/output-log.ts';

let folder = '';
let count = 0;
const logs: OutputLog[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-log-'));
});
afterEach(async () => {
  for (const log of logs.splice(0)) log.close();
  await rm(folder, { recursive: true, force: true });
});

function newLog(limitBytes = 1_000_000): { log: OutputLog; path: string } {
  count += 1;
  const path = join(folder, `${count}.log`);
  const log = new OutputLog(path, limitBytes);
  logs.push(log);
  return { log, path };
}

async function readAll(log: OutputLog, offset = 0): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of log.readFrom(offset)) parts.push(part);
  return Buffer.concat(parts).toString('latin1');
}

describe('the output log', () => {
  it('gives any reader, whenever it comes, every byte from its offset to the end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 20 }),
        fc.nat(20),
        fc.nat(20_000),
        async (parts, after, offset) => {
          const { log } = newLog();
          const whole = Buffer.concat(parts);
          for (const part of parts.slice(0, after)) log.append(part);
          const read = readAll(log, offset);
          for (const part of parts.slice(after)) {
            log.append(part);
            await new Promise((resume) => setImmediate(resume));
          }
          log.end();
          expect(await read).toBe(whole.subarray(offset).toString('latin1'));
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each([
    { limit: 10, sent: [10], kept: 10, dropped: 0 },
    { limit: 10, sent: [11], kept: 10, dropped: 1 },
    { limit: 10, sent: [4, 4, 4, 4], kept: 10, dropped: 6 },
    { limit: 0, sent: [5], kept: 0, dropped: 5 },
  ])('keeps the head of $sent at a limit of $limit', async ({ limit, sent, kept, dropped }) => {
    const { log, path } = newLog(limit);
    for (const length of sent) log.append(Buffer.alloc(length, 'x'));
    expect([log.bytes, log.droppedBytes]).toEqual([kept, dropped]);
    expect((await readFile(path)).length).toBe(kept);
  });

  it('never writes over a file that is there', async () => {
    const path = join(folder, 'there');
    await writeFile(path, 'kept');
    expect(() => new OutputLog(path, 10)).toThrow('EEXIST');
    expect(await readFile(path, 'utf8')).toBe('kept');
  });

  it('says that its file was cut instead of ending early', async () => {
    const { log, path } = newLog();
    log.append(Buffer.from('0123456789'));
    await truncate(path, 4);
    log.end();
    await expect(readAll(log, 5)).rejects.toMatchObject({ code: 'log_changed' });
  });
});

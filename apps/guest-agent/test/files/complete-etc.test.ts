import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { completeEtc } from '../../src/files/make-folders.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-etc-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the /etc of a guest', () => {
  it('gets what its image lacks or has empty, and keeps what the image says', async () => {
    await writeFile(join(folder, 'hosts'), '');
    await writeFile(join(folder, 'passwd'), 'of the image\n');
    await completeEtc({ hosts: 'ours\n', passwd: 'ours\n', group: 'ours\n' }, folder);
    const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8');
    expect([await read('hosts'), await read('passwd'), await read('group')]).toEqual(['ours\n', 'of the image\n', 'ours\n']);
  });
});

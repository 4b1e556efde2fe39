import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, identifyProcess, isAlive, type ProcessIdentity } from '@firecrew/base';

/** A mark's name says whose it is, so that it is whole as soon as it is there. */
const MARK = /^([1-9][0-9]{0,9})\.([0-9]{1,20})\.([0-9a-f-]{36})\.[0-9a-f]{8}$/;

/** Marks in a folder that this process uses what lies beside it; gives the mark's path. One of a process that has died counts for nothing. */
export async function markUse(folder: string): Promise<string> {
  const own = identifyProcess(process.pid);
  if (own === undefined) throw new TypeError('this process cannot be identified');
  const mark = join(folder, `${own.pid}.${own.startTicks}.${own.bootId}.${randomBytes(4).toString('hex')}`);
  await mkdir(folder, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  await writeFile(mark, '', { flag: 'wx', mode: 0o600 });
  return mark;
}

/** Whether a process that lives has left a mark; marks of dead ones are removed. What no mark of ours is counts as use. */
export async function isUsed(folder: string): Promise<boolean> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  let isUsedNow = false;
  for (const name of names) {
    const owner = ownerOf(name);
    if (owner === undefined || isAlive(owner)) isUsedNow = true;
    else await rm(join(folder, name), { force: true });
  }
  return isUsedNow;
}

function ownerOf(name: string): ProcessIdentity | undefined {
  const [, pid, startTicks, bootId] = MARK.exec(name) ?? [];
  return pid === undefined || startTicks === undefined || bootId === undefined ? undefined : { pid: Number(pid), startTicks, bootId };
}

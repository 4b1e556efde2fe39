import { readdir, readlink, realpath, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ReadOnlyBind } from '../port/driver.ts';
import { coveredBySystem, installPrefix, isHomeOrAbove, prefixOfProgramFolder } from './install-prefix.ts';

/** Folders of a PATH, entries of one folder, and binds that are looked at; what is beyond is left out and said. */
export const MAX_PATH_FOLDERS = 128;
export const MAX_FOLDER_ENTRIES = 4096;
export const MAX_PATH_BINDS = 512;
const MAX_LINK_HOPS = 16;

/** What of the host the programs of a caller's PATH need. */
export interface CallerPath {
  readonly binds: readonly ReadOnlyBind[];
  /** The PATH for the guest: the folders that are there. */
  readonly path: string;
  /** What was left out, one text each. */
  readonly leftOut: readonly string[];
}

/**
 * The read-only binds of a caller's PATH: its folders and the install prefixes that the links in them lead to. Never a home
 * itself, nor anything above one; what `/usr` covers needs no bind.
 */
export async function callerPathBinds(callerPath: string, homes: readonly string[] = [homedir()]): Promise<CallerPath> {
  const collected = new Collection(homes);
  const folders = [...new Set(callerPath.split(':').filter((part) => part !== ''))];
  for (const folder of folders.slice(MAX_PATH_FOLDERS)) collected.leaveOut(folder, 'too many folders');
  const path: string[] = [];
  for (const folder of folders.slice(0, MAX_PATH_FOLDERS)) {
    const real = await collected.addFolder(folder);
    if (real !== undefined) path.push(real);
  }
  return { binds: collected.binds(), path: [...new Set(path)].join(':'), leftOut: collected.leftOut };
}

class Collection {
  readonly leftOut: string[] = [];
  readonly #homes: readonly string[];
  readonly #byTarget = new Map<string, string>();

  constructor(homes: readonly string[]) {
    this.#homes = homes;
  }

  leaveOut(path: string, why: string): void {
    this.leftOut.push(`${path}: ${why}`);
  }

  /** Adds a folder of the PATH and what its links lead to; gives its real path. */
  async addFolder(folder: string): Promise<string | undefined> {
    const real = folder.startsWith('/') ? await realpath(folder).catch(() => undefined) : undefined;
    if (real === undefined || !(await stat(real)).isDirectory()) {
      this.leaveOut(folder, folder.startsWith('/') ? 'no folder' : 'not absolute');
      return undefined;
    }
    if (isHomeOrAbove(real, this.#homes)) {
      this.leaveOut(folder, 'a home, or above one');
      return undefined;
    }
    this.#add(real, real);
    const prefix = await prefixOfProgramFolder(real, this.#homes);
    if (prefix !== undefined) this.#add(prefix, prefix);
    if (!coveredBySystem(real)) await this.#followFolder(real);
    return real;
  }

  /** Without what lies in another bind: it is there already, and nothing can be mounted in a read-only folder. */
  binds(): ReadOnlyBind[] {
    const all = [...this.#byTarget].map(([target, source]) => ({ source, target }));
    const isInside = (one: ReadOnlyBind): boolean => all.some((other) => one.target.startsWith(`${other.target}/`));
    return all.filter((one) => !isInside(one)).sort((a, b) => (a.target < b.target ? -1 : 1));
  }

  async #entries(folder: string): Promise<string[]> {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    if (entries.length > MAX_FOLDER_ENTRIES) this.leaveOut(folder, `links of entries beyond the first ${MAX_FOLDER_ENTRIES}`);
    return entries.slice(0, MAX_FOLDER_ENTRIES).flatMap((entry) => (entry.isSymbolicLink() ? [entry.name] : []));
  }

  /** Every place on the way of a link must be there in the guest, not only where it ends: links in the middle of a path included. */
  async #followLinks(link: string): Promise<void> {
    let rest = link.split('/').filter((part) => part !== '');
    let at = '/';
    for (let hops = 0; rest.length > 0 && hops < MAX_LINK_HOPS; ) {
      const [part = '', ...after] = rest;
      const next = join(at, part);
      const target = await readlink(next).catch(() => undefined);
      rest = after;
      if (target === undefined) at = next;
      else {
        const whole = join(resolve(at, target), ...after);
        await this.#addPrefixOf(whole);
        rest = whole.split('/').filter((one) => one !== '');
        at = '/';
        hops += 1;
      }
    }
  }

  async #addPrefixOf(program: string): Promise<void> {
    if (coveredBySystem(program)) return;
    const prefix = installPrefix(program, this.#homes);
    const source = prefix === undefined ? undefined : await realpath(prefix).catch(() => undefined);
    if (prefix === undefined || source === undefined) this.leaveOut(program, 'no install folder apart from a home');
    else if (isHomeOrAbove(source, this.#homes)) this.leaveOut(program, 'its folder is a home, or above one');
    else if (this.#add(source, prefix)) await this.#followFolder(join(prefix, 'bin'));
  }

  async #followFolder(folder: string): Promise<void> {
    for (const name of await this.#entries(folder)) await this.#followLinks(join(folder, name));
  }

  /** True when it is new. */
  #add(source: string, target: string): boolean {
    if (coveredBySystem(target) || this.#byTarget.has(target)) return false;
    if (this.#byTarget.size >= MAX_PATH_BINDS) {
      this.leaveOut(target, 'too many binds');
      return false;
    }
    this.#byTarget.set(target, source);
    return true;
  }
}

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, messageOf } from '@firecrew/base';
import { signalProcess } from '@firecrew/vmm';
import { GROUP_EMPTY_MS, GROUP_PAUSE_MS } from './limits.ts';

/** Where a guest's kernel shows cgroup v2, and which group this process is in. */
export interface CgroupPlaces {
  readonly root: string;
  readonly ownFile: string;
}

const PLACES: CgroupPlaces = { root: '/sys/fs/cgroup', ownFile: '/proc/self/cgroup' };
/** This process is in no other group than that of everything: all of cgroup v2 is its own. */
const IN_ROOT = '0::/\n';
/** Of a group: what its kernel killed for want of memory, how many it is. One that a kernel lacks is left out. */
const CONTROLLERS = ['memory', 'pids'] as const;

/**
 * A group of cgroup v2 for each exec of a VM. Unlike a session and a mark in the environment a process cannot leave it without root's rights,
 * and all of it is killed in one step, also while it forks.
 */
export class ExecGroups {
  readonly #places: CgroupPlaces;
  readonly #note: (text: string) => void;
  #count = 0;

  private constructor(places: CgroupPlaces, note: (text: string) => void) {
    this.#places = places;
    this.#note = note;
  }

  /** Undefined, with a note, where this process may not make groups or its kernel cannot kill one (before 5.14). */
  static open(note: (text: string) => void, places: CgroupPlaces = PLACES): ExecGroups | undefined {
    const groups = new ExecGroups(places, note);
    try {
      const own = readFileSync(places.ownFile, 'latin1');
      if (own !== IN_ROOT) throw new Error(`this process is in the group ${JSON.stringify(own.trim().slice(0, 200))}`);
      for (const name of CONTROLLERS) groups.#enable(name);
      const trial = groups.#make();
      const canKill = existsSync(join(trial, 'cgroup.kill'));
      rmdirSync(trial);
      if (!canKill) throw new Error('this kernel cannot kill a group');
      return groups;
    } catch (error) {
      note(`no groups for commands, which are found by their session and environment: ${messageOf(error)}`);
      return undefined;
    }
  }

  /**
   * Runs `start`, whose new processes are in a new group from their first instruction on: this process is in it meanwhile, so `start` must
   * return at once. The group is undefined, with a note, where that failed; `start` is run all the same, and what it throws is thrown.
   */
  within<T>(start: () => T): { readonly value: T; readonly group: ExecGroup | undefined } {
    const path = this.#tryMake();
    const isIn = path !== undefined && this.#tried('entered', () => enter(path));
    let isOut = false;
    try {
      const value = start();
      isOut = this.#leave(isIn);
      return { value, group: path !== undefined && isIn && isOut ? new ExecGroup(path) : undefined };
    } catch (error) {
      isOut ||= this.#leave(isIn);
      if (path !== undefined && isOut) this.#tried('removed', () => rmdirSync(path));
      throw error;
    }
  }

  /** A group that holds this process is never killed. */
  #leave(isIn: boolean): boolean {
    return !isIn || this.#tried('left', () => enter(this.#places.root));
  }

  #tryMake(): string | undefined {
    let path: string | undefined;
    this.#tried('made', () => {
      path = this.#make();
    });
    return path;
  }

  #tried(what: string, act: () => void): boolean {
    try {
      act();
      return true;
    } catch (error) {
      this.#note(`the group of a command could not be ${what}: ${messageOf(error)}`);
      return false;
    }
  }

  #make(): string {
    this.#count += 1;
    const path = join(this.#places.root, `firecrew-exec-${this.#count}`);
    mkdirSync(path);
    return path;
  }

  #enable(controller: string): void {
    try {
      writeFileSync(join(this.#places.root, 'cgroup.subtree_control'), `+${controller}`);
    } catch {
      // Left out: commands are found and ended without it.
    }
  }
}

/** The group of one exec. */
export class ExecGroup {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Its processes that live now. */
  pids(): number[] {
    return this.#read('cgroup.procs')
      .split('\n')
      .filter((line) => /^[1-9][0-9]*$/.test(line))
      .map(Number);
  }

  /** Signals all of it; SIGKILL in one step. */
  signal(signal: NodeJS.Signals): void {
    if (signal !== 'SIGKILL') for (const pid of this.pids()) signalProcess(pid, signal);
    else if (existsSync(this.path)) writeFileSync(join(this.path, 'cgroup.kill'), '1');
  }

  /** Kills what is left of it, waits until that is gone, and removes it. One whose processes the kernel holds on to stays. */
  async end(): Promise<void> {
    this.signal('SIGKILL');
    for (const from = performance.now(); performance.now() - from < GROUP_EMPTY_MS; await delay(GROUP_PAUSE_MS)) {
      if (/^populated 1$/m.test(this.#read('cgroup.events'))) continue;
      try {
        return rmdirSync(this.path);
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return;
        if (codeOf(error) !== 'EBUSY') throw error;
      }
    }
  }

  #read(file: string): string {
    try {
      return readFileSync(join(this.path, file), 'latin1');
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENODEV') return '';
      throw error;
    }
  }
}

/** Moves this process into a group. */
function enter(group: string): void {
  writeFileSync(join(group, 'cgroup.procs'), '0');
}

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

/** The built command, as `bin/firecrew` starts it. */
export const MAIN = fileURLToPath(new URL('../bundle/command.mjs', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  readonly output: () => string;
  signal(name: NodeJS.Signals): void;
}

const view = z.object({ pid: z.int() }).nullable();
export const statusSchema = z.object({
  home: z.string(),
  ready: z.boolean(),
  state: z.string(),
  url: z.string().nullable(),
  supervisor: view,
  server: view,
  database: view,
  nodeAgent: view,
  shims: z.array(z.object({ pid: z.int() })),
  restarts: z.int(),
});

/** A home for one test file, and the command with it. Whatever runs in it ends in `remove`. */
export class TestHome {
  readonly folder = mkdtempSync(join(tmpdir(), 'fc-cli-'));
  readonly root = join(this.folder, 'home');
  readonly env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOME: this.folder,
    FIRECREW_HOME: this.root,
    FIRECREW_CALLER_PATH: process.env.PATH ?? '',
    FIRECREW_ALLOW_UNISOLATED: '1',
    GIT_CONFIG_NOSYSTEM: '1',
  };

  constructor() {
    // As root the database runs as another account, which walks through.
    chmodSync(this.folder, 0o711);
  }

  start(args: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}): Started {
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: options.cwd ?? this.folder,
      env: { ...this.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (part: Buffer) => {
      stdout += part.toString();
    });
    child.stderr.on('data', (part: Buffer) => {
      stderr += part.toString();
    });
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (code) => resolve({ code, stdout, stderr }));
    });
    return { pid: child.pid ?? 0, ended, output: () => stdout + stderr, signal: (name) => void child.kill(name) };
  }

  async run(...args: string[]): Promise<Ended> {
    return await this.start(args).ended;
  }

  async status(): Promise<z.infer<typeof statusSchema>> {
    return statusSchema.parse(JSON.parse((await this.run('status', '--json')).stdout));
  }

  async remove(): Promise<void> {
    await this.run('down', '--force');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Waits until `look` gives something. */
export async function eventually<T>(look: () => Promise<T | undefined> | T | undefined, ms = 30_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** A fresh folder for each test of a file, removed afterwards; the function gives a path in it. */
export function temporaryFolder(): (...parts: string[]) => string {
  let base = '';
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'firecrew-rootfs-'));
  });
  afterEach(() => rm(base, { recursive: true, force: true }));
  return (...parts) => join(base, ...parts);
}

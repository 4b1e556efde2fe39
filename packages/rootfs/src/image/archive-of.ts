import type { Readable } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { type ByteBudget, spoolArchive } from '../oci/spool-archive.ts';
import { hasTool, runTool, TOOLS, type ToolCall } from '../tools/run-tool.ts';

/** What both kinds of plain sources need. */
export interface ArchiveOptions {
  readonly budget: ByteBudget;
  readonly signal?: AbortSignal | undefined;
}

/** A suite of Debian or of a system made like it, and what is added to its smallest set of packages. */
export interface SuiteSource {
  /** Such as `debian:bookworm`. */
  readonly suite: string;
  readonly packages: readonly string[];
  /** Where packages come from; the tool's own choice by default. */
  readonly mirror: string | undefined;
  /** `amd64` or `arm64`. */
  readonly architecture: string;
}

const SUITE = /^(debian|ubuntu):([a-z][a-z0-9-]{0,63})$/;
const PACKAGE = /^[a-z0-9][a-z0-9+.-]{1,99}$/;
/** Times of files that installing makes, so that two builds give the same: seconds since 1970. */
const SUITE_TIME = '1700000000';
/** Attributes that {@link scanTar} keeps; others are not even read. */
const XATTRS = ['--xattrs', '--xattrs-include=user.*', '--xattrs-include=security.capability'];

/** Writes a folder as an archive to a new file, with owners, hard links and attributes as they are. Throws `tool_missing`, `tool_failed`. */
export async function archiveFolder(folder: string, file: string, options: ArchiveOptions): Promise<void> {
  const format = ['--create', '--format=pax', '--pax-option=delete=atime,delete=ctime', '--numeric-owner'];
  await spoolOutput({ tool: TOOLS.tar, args: [...format, ...XATTRS, '--directory', folder, '--', '.'] }, file, options);
}

/** The name of a suite without its system. Throws `suite_unknown`. */
export function parseSuite(text: string): string {
  const name = SUITE.exec(text)?.[2];
  if (name !== undefined) return name;
  throw new CodedError('suite_unknown', `${JSON.stringify(text)} names no suite`, { id: text, action: 'Write it like debian:bookworm.' });
}

/** Installs a suite and writes it as an archive to a new file. Throws `suite_unknown`, `package_name_wrong`, `tool_missing`, `tool_failed`. */
export async function archiveSuite(source: SuiteSource, file: string, options: ArchiveOptions): Promise<void> {
  const suite = parseSuite(source.suite);
  const wrong = source.packages.find((name) => !PACKAGE.test(name));
  if (wrong !== undefined)
    throw new CodedError('package_name_wrong', `${JSON.stringify(wrong)} is no name of a package`, {
      id: wrong,
      action: 'Use names as apt knows them.',
    });
  if (!(await hasTool(TOOLS.mmdebstrap)))
    throw new CodedError('tool_missing', 'the program mmdebstrap, which installs a suite into an image, is not on this machine', {
      id: 'mmdebstrap',
      action: 'Install it (apt-get install mmdebstrap), or build from a folder or an OCI layout.',
    });
  const include = source.packages.length === 0 ? [] : [`--include=${source.packages.join(',')}`];
  const mirror = source.mirror === undefined ? [] : [source.mirror];
  const args = ['--variant=minbase', '--format=tar', `--architectures=${source.architecture}`, ...include, suite, '-', ...mirror];
  await spoolOutput({ tool: TOOLS.mmdebstrap, args, env: { SOURCE_DATE_EPOCH: SUITE_TIME, ...proxies() } }, file, options);
}

function proxies(): Record<string, string> {
  const names = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'TMPDIR'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}

async function spoolOutput(call: ToolCall, file: string, { budget, signal }: ArchiveOptions): Promise<void> {
  await runTool({
    ...call,
    signal,
    output: async (stream: Readable) => {
      await spoolArchive(stream, file, { compression: 'none', algorithm: 'sha256', budget, signal });
    },
  });
}

import { join } from 'node:path';
import { splitRecords } from './git-records.ts';
import type { GitConfigEntry } from './git-settings.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';

/** What of a person's configuration decides how their files are read. Nothing in it names a program. */
export interface UserSettings {
  readonly config: readonly GitConfigEntry[];
  /** `core.autocrlf` when it is on: the server needs it to read new line ends as git would. */
  readonly autocrlf?: 'true' | 'input';
  readonly partial: boolean;
  readonly sparse: boolean;
}

const BOOLEAN = /^(?:true|false|yes|no|on|off|0|1)$/i;

// Keys that may be carried over, with the values each may have.
const CARRIED: Readonly<Record<string, RegExp>> = {
  'core.autocrlf': /^(?:true|false|input)$/i,
  'core.eol': /^(?:lf|crlf|native)$/i,
  'core.filemode': BOOLEAN,
  'core.symlinks': BOOLEAN,
  'core.ignorecase': BOOLEAN,
  'core.precomposeunicode': BOOLEAN,
  'core.sparsecheckout': BOOLEAN,
  'core.sparsecheckoutcone': BOOLEAN,
  'core.excludesfile': /^\/[^\0\n]*$/,
};

const WANTED =
  '^(core\\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|sparsecheckout|sparsecheckoutcone|excludesfile)|extensions\\.partialclone|remote\\..*\\.(promisor|partialclonefilter))$';

/** Reads those settings; the last value of a key counts, as for git. */
export async function readUserSettings(
  place: { readonly gitDir: string; readonly root: string },
  env: Readonly<Record<string, string | undefined>>,
): Promise<UserSettings> {
  const answer = await runGit(['config', '--null', '--type=path', '--get-regexp', WANTED], {
    gitDir: place.gitDir,
    cwd: place.root,
    userEnv: env,
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    exitCodes: [0, 1],
  });
  const values = new Map<string, string>();
  let partial = false;
  for (const record of splitRecords(answer.stdout)) {
    const text = record.toString('utf8');
    const at = text.indexOf('\n');
    const key = (at === -1 ? text : text.slice(0, at)).toLowerCase();
    const value = at === -1 ? 'true' : text.slice(at + 1);
    if (key === 'extensions.partialclone' || key.startsWith('remote.')) partial ||= value !== '' && !/^(?:false|no|off|0)$/i.test(value);
    else values.set(key, value);
  }
  const config = [...values]
    .filter(([key, value]) => CARRIED[key]?.test(value) === true)
    .map(([key, value]): GitConfigEntry => [key, value]);
  const home = env.XDG_CONFIG_HOME ?? (env.HOME === undefined ? undefined : join(env.HOME, '.config'));
  if (!values.has('core.excludesfile') && home?.startsWith('/') === true) config.push(['core.excludesfile', join(home, 'git', 'ignore')]);
  const sparse = /^(?:true|yes|on|1)$/i.test(values.get('core.sparsecheckout') ?? '');
  const autocrlf = values.get('core.autocrlf')?.toLowerCase();
  return { config, partial, sparse, ...(autocrlf === 'true' || autocrlf === 'input' ? { autocrlf } : {}) };
}

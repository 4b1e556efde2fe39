/** A transport that a call of git may use. */
export type GitProtocol = 'https' | 'ssh' | 'file';

/** One `key=value` of git's configuration. */
export type GitConfigEntry = readonly [key: string, value: string];

// What may never run, whichever configuration is in force. The command line wins over every file.
const NEVER: readonly GitConfigEntry[] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.untrackedCache', 'false'],
  ['core.pager', 'cat'],
  ['core.editor', 'false'],
  ['core.askPass', ''],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['push.followTags', 'false'],
  ['push.gpgSign', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['advice.detachedHead', 'false'],
];

// Ours alone: nothing of the machine, of the person or of a tree adds to it.
const FIXED: readonly GitConfigEntry[] = [
  ['safe.bareRepository', 'explicit'],
  // Nothing that a repository's owner could configure is run, so who owns it decides nothing.
  ['safe.directory', '*'],
  ['core.attributesFile', '/dev/null'],
  ['core.excludesFile', '/dev/null'],
  ['core.quotePath', 'false'],
  ['core.autocrlf', 'false'],
  ['core.safecrlf', 'false'],
  ['credential.helper', ''],
  ['diff.renames', 'true'],
  ['diff.renameLimit', '1000'],
  ['diff.noprefix', 'false'],
  ['diff.mnemonicPrefix', 'false'],
  ['diff.submodule', 'short'],
  ['diff.ignoreSubmodules', 'all'],
  ['status.submoduleSummary', 'false'],
  ['pack.packSizeLimit', '0'],
  ['pack.threads', '2'],
  ['protocol.version', '2'],
  ['init.templateDir', ''],
  ['init.defaultBranch', 'main'],
  ['log.showSignature', 'false'],
  ['fetch.unpackLimit', '1'],
  ['transfer.unpackLimit', '1'],
];

function asArguments(entries: readonly GitConfigEntry[]): string[] {
  return entries.flatMap(([key, value]) => ['-c', `${key}=${value}`]);
}

/** The arguments that stand before every command. */
export function configArguments(mode: 'fixed' | 'user', extra: readonly GitConfigEntry[] = []): string[] {
  return ['--no-pager', ...asArguments(mode === 'fixed' ? [...NEVER, ...FIXED] : NEVER), ...asArguments(extra)];
}

/** Variables that every call gets. */
const COMMON: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  LANGUAGE: '',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  SSH_ASKPASS_REQUIRE: 'never',
  GIT_PAGER: 'cat',
  GIT_EDITOR: 'false',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GCM_INTERACTIVE: 'never',
};

/** The whole environment of a call under our own configuration. `path` is where git and ssh are looked for. */
export function fixedEnvironment(path: string, protocols: readonly GitProtocol[]): Record<string, string> {
  return {
    ...COMMON,
    PATH: path,
    HOME: '/nonexistent',
    XDG_CONFIG_HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_ALLOW_PROTOCOL: protocols.join(':'),
    GIT_SSH_COMMAND: 'ssh -oBatchMode=yes',
    GIT_AUTHOR_NAME: 'Firecrew',
    GIT_AUTHOR_EMAIL: 'firecrew@localhost',
    GIT_COMMITTER_NAME: 'Firecrew',
    GIT_COMMITTER_EMAIL: 'firecrew@localhost',
  };
}

// Kept of the caller's GIT_ variables: how to reach and to prove oneself, never where the repository lies.
const USER_GIT_VARIABLES =
  /^GIT_(?:SSH|SSH_COMMAND|SSH_VARIANT|SSL_.+|HTTP_.+|PROXY_.+|CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+|GLOBAL|SYSTEM|NOSYSTEM)|EXEC_PATH)$/;

/** The environment of a call with the person's own configuration: theirs, without what moves the repository, and never a prompt. */
export function userEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && (!name.startsWith('GIT_') || USER_GIT_VARIABLES.test(name))) kept[name] = value;
  }
  return { ...kept, ...COMMON };
}

import { AGENT_DIR_VARIABLE } from './command-harness.ts';

/** What is known where the caller stands. */
export interface InjectionFacts {
  /** The agent's shell command as given. */
  readonly command: string;
  /** True where that path, as written, is a regular file for the caller. */
  readonly callerHas: (path: string) => boolean;
  /** True where that relative path is in the tree. */
  readonly treeHas: (path: string) => boolean;
  /** Folders of the caller's PATH: a program in one of them is installed, not a file of the task. */
  readonly pathFolders?: readonly string[];
}

/** A file to inject, the command that then calls it, and what to tell the caller. */
export interface AgentInjection {
  readonly command: string;
  readonly file: { readonly name: string; readonly callerPath: string };
  readonly notice: string;
}

const SYSTEM_FOLDERS = ['/bin/', '/sbin/', '/usr/', '/lib/', '/opt/', '/nix/', '/snap/'];

/**
 * When the first word of the agent's command is a path that exists for the caller and not in the tree, it is sent along as an agent file.
 * Undefined where the command stays as it is, also for words that the shell would still expand.
 */
export function planAgentInjection(facts: InjectionFacts): AgentInjection | undefined {
  const match = /^\s*(?:'([^']+)'|"([^"$`\\]+)"|([^\s'"$`\\;&|<>(){}*?[\]~=#!]+))(?=\s|$)/.exec(facts.command);
  const word = match?.[1] ?? match?.[2] ?? match?.[3];
  if (match === null || word === undefined || !word.includes('/') || word.endsWith('/')) return undefined;
  if (SYSTEM_FOLDERS.some((folder) => word.startsWith(folder))) return undefined;
  const at = word.lastIndexOf('/');
  if (facts.pathFolders?.includes(word.slice(0, at)) === true) return undefined;
  const inTree = word.replace(/^(?:\.\/+)+/, '');
  if (!inTree.startsWith('/') && facts.treeHas(inTree)) return undefined;
  if (!facts.callerHas(word)) return undefined;
  const name = word
    .slice(at + 1)
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[^A-Za-z0-9]/, 'a')
    .slice(0, 100);
  return {
    command: `"$${AGENT_DIR_VARIABLE}"/${name}${facts.command.slice(match[0].length)}`,
    file: { name, callerPath: word },
    notice: `${word} is not in the tree, so it is sent along and runs as $${AGENT_DIR_VARIABLE}/${name}.`,
  };
}

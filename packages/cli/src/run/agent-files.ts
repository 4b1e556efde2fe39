import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { planAgentInjection } from '@firecrew/harness';
import { MAX_AGENT_FILES } from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';

/** A file that is sent along with the agent's command. */
export interface AgentFileToSend {
  readonly name: string;
  readonly path: string;
}

/** The agent's command as it will run, and what goes with it. */
export interface AgentPlan {
  readonly command: string;
  readonly files: readonly AgentFileToSend[];
  readonly notice: string | undefined;
}

/** What is known of the caller's place. */
export interface AgentFacts {
  readonly command: string;
  readonly agentFiles: readonly string[];
  readonly cwd: string;
  readonly pathFolders: readonly string[];
  readonly treeHas: (path: string) => boolean;
}

/** Plans what is sent: files named by hand, and the program of the command where it lies with the caller and not in the tree. Throws `usage_wrong`. */
export function planAgent(facts: AgentFacts): AgentPlan {
  const callerHas = (path: string): boolean => isFile(resolve(facts.cwd, path));
  const files = facts.agentFiles.map((path): AgentFileToSend => {
    if (!callerHas(path))
      throw new UsageError('usage_wrong', `--agent-file ${path} is no file`, { id: path, action: 'Name a file that exists.' });
    return { name: fileName(path), path: resolve(facts.cwd, path) };
  });
  const { command, treeHas, pathFolders } = facts;
  const injection = planAgentInjection({ command, callerHas, treeHas, pathFolders });
  if (injection !== undefined) files.push({ name: injection.file.name, path: resolve(facts.cwd, injection.file.callerPath) });
  const unique = [...new Map(files.map((file) => [`${file.name}\0${file.path}`, file])).values()];
  const taken = new Set<string>();
  for (const { name } of unique) {
    if (taken.has(name))
      throw new UsageError('usage_wrong', `two agent files are called ${name}`, { id: name, action: 'Rename one of them.' });
    taken.add(name);
  }
  if (unique.length > MAX_AGENT_FILES)
    throw new UsageError('usage_wrong', `more than ${MAX_AGENT_FILES} agent files were named`, { action: 'Pack them into one archive.' });
  return { command: injection?.command ?? command, files: unique, notice: injection?.notice };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** A plain file name: other characters become `_`. */
function fileName(path: string): string {
  return basename(path)
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[^A-Za-z0-9]/, 'a')
    .slice(0, 100);
}

/** SHA-256 of a file, hexadecimal. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(file)) hash.update(part as Buffer);
  return hash.digest('hex');
}

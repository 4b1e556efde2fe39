// Ways to plant something in a small workspace, and to ask a check about it.
import { join } from 'node:path';
import { allChecks } from '../../tools/lint/all-checks.ts';
import { ROOT, type SmallWorkspace } from './small-workspace.ts';

export const BIN = join(ROOT, 'node_modules', '.bin');
export const DECISION = 'packages/topology/src/index.ts';
export const BASE = 'packages/base/src/index.ts';

type Plant = (workspace: SmallWorkspace) => void;

/** What the check called `name` finds in the workspace, as one text. */
export async function findingsOf(workspace: SmallWorkspace, name: string): Promise<string> {
  const check = allChecks(workspace.root, BIN)[name];
  if (check === undefined) throw new Error(`no check called ${name}`);
  return (await check()).join('\n');
}

export function replace(path: string, from: string, to: string): Plant {
  return (workspace) =>
    workspace.edit(path, (text) => {
      if (!text.includes(from)) throw new Error(`${path} does not hold ${from}`);
      return text.replace(from, to);
    });
}

export function append(path: string, text: string): Plant {
  return (workspace) => workspace.edit(path, (before) => `${before}\n${text}\n`);
}

export function write(path: string, text: string): Plant {
  return (workspace) => workspace.write(path, text);
}

export function manifest(path: string, change: object): Plant {
  return (workspace) => workspace.edit(path, (text) => JSON.stringify({ ...JSON.parse(text), ...change }, null, 2));
}

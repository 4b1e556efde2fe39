import { join } from 'node:path';
import { installVersion } from '@firecrew/base';

/** The programs of one version of the node agent: shims run from it, so an upgrade never removes code under one that lives. */
export interface InstalledPrograms {
  readonly digest: string;
  readonly node: string;
  readonly shim: string;
  readonly broker: string;
  readonly guestAgent: string;
}

/** Where the programs come from. */
export interface ProgramSources {
  readonly node: string;
  readonly shim: string;
  readonly broker: string;
  readonly guestAgent: string;
}

/** Puts the programs into `versions/<digest>/` unless they are there. */
export async function installPrograms(versions: string, sources: ProgramSources): Promise<InstalledPrograms> {
  const { digest, folder } = await installVersion(versions, {
    node: sources.node,
    'shim.mjs': sources.shim,
    'credential-broker.mjs': sources.broker,
    'guest-agent.cjs': sources.guestAgent,
  });
  const at = (name: string) => join(folder, name);
  return { digest, node: at('node'), shim: at('shim.mjs'), broker: at('credential-broker.mjs'), guestAgent: at('guest-agent.cjs') };
}

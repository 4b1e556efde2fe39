import { GENERATION } from '@firecrew/protocol';
import { findServer } from '../server/find-server.ts';
import { type CommandContext, existingHomeOf } from './context.ts';

/** `firecrew version`: of this command and of the server that runs now; starts nothing. */
export async function versionCommand(context: CommandContext, json: boolean): Promise<number> {
  const home = existingHomeOf(context);
  const found = home === undefined ? undefined : await findServer(home);
  const server = found?.ready === true ? { version: found.file.version, generation: found.file.generation } : null;
  if (json) context.out.line(JSON.stringify({ version: context.version, generation: GENERATION, node: process.versions.node, server }));
  else {
    context.out.line(`firecrew ${context.version} (API generation ${GENERATION}, Node ${process.versions.node})`);
    context.out.line(server === null ? 'no server runs' : `server ${server.version} (API generation ${server.generation})`);
  }
  return 0;
}

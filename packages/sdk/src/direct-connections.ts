import { isLoopback } from '@firecrew/protocol';
import type { Agent, Dispatcher } from 'undici';

let direct: Agent | undefined;

/** Connections to a server of this host, which no proxy of the environment may stand in; undefined for another host: those of the process. */
export async function directConnections(url: URL): Promise<Dispatcher | undefined> {
  if (!isLoopback(url)) return undefined;
  const { Agent } = await import('undici');
  direct ??= new Agent();
  return direct;
}

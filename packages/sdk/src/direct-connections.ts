import { isLoopback } from '@firecrew/protocol';
import { Agent, type Dispatcher } from 'undici';

let direct: Agent | undefined;

/** Connections to a server of this host, which no proxy of the environment may stand in; undefined for another host: those of the process. */
export function directConnections(url: URL): Dispatcher | undefined {
  if (!isLoopback(url)) return undefined;
  direct ??= new Agent();
  return direct;
}

import { isLoopback } from '@firecrew/protocol';
import { Agent, type Dispatcher, request } from 'undici';

// All that is used of the HTTP client, in a file of its own: it is most of what there is to read, and a program that makes no call leaves it out.
export { request };

let direct: Agent | undefined;

/** Connections to a server of this host, which no proxy of the environment may stand in; undefined for another host: those of the process. */
export function directConnections(url: URL): Dispatcher | undefined {
  if (!isLoopback(url)) return undefined;
  direct ??= new Agent();
  return direct;
}

import { lookup } from 'node:dns/promises';
import { messageOf } from '@firecrew/base';
import type { Logger } from 'pino';
import type { ServerConnections } from './server-connections.ts';

/**
 * Addresses of the server as they are now: a guest may not reach it by any name. Throws where its name cannot be looked up, unless it is reached through the
 * operator's proxy: then it may have none here, where guests are looked up, too; its own addresses come with each turn.
 */
export async function findServerAddresses(url: URL, connections: ServerConnections, log: Logger): Promise<string[]> {
  try {
    const found = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true });
    return found.map(({ address }) => address.split('%')[0] ?? address);
  } catch (error) {
    if (!connections.isTunnelled(url)) throw error;
    log.warn({ detail: messageOf(error) }, 'the name of the server, which is reached through the egress proxy, has no address here');
    return [];
  }
}

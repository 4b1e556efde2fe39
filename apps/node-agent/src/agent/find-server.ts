import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';
import { serverFileSchema } from '@firecrew/protocol';
import type { NodeConfig } from './config.ts';

/** The server's URL now: a restarted server on this machine may have another port. Throws `server_unknown`, `server_url_refused`. */
export async function findServer(config: NodeConfig): Promise<URL> {
  const url = new URL(config.serverUrl ?? (await readServerFile(config.serverFile ?? '')));
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
  if (url.protocol === 'https:' || (url.protocol === 'http:' && config.allowHttp && isLoopback)) return url;
  throw new CodedError('server_url_refused', `the server URL ${url.origin} is neither https nor loopback`, {
    action: 'Use an https URL for a server elsewhere.',
  });
}

async function readServerFile(file: string): Promise<string> {
  try {
    return serverFileSchema.parse(JSON.parse(await readFile(file, 'utf8'))).url;
  } catch (cause) {
    throw new CodedError('server_unknown', `no running server is named in ${file}: ${messageOf(cause).slice(0, 200)}`, { cause });
  }
}

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import { isLoopback, serverFileSchema } from '@firecrew/protocol';
import type { NodeConfig } from './config.ts';

/** Most that is read of a `server.json`, in bytes. */
const SERVER_FILE_MAX_BYTES = 16 * 1024;

/** The server's URL now: a restarted server on this machine may have another port. Throws `server_unknown`, `server_url_refused`. */
export async function findServer(config: NodeConfig): Promise<URL> {
  const url = new URL(config.serverUrl ?? (await readServerFile(config.serverFile ?? '')));
  if (url.protocol === 'https:' || (url.protocol === 'http:' && config.allowHttp && isLoopback(url))) return url;
  throw new CodedError('server_url_refused', `the server URL ${url.origin} is neither https nor loopback`, {
    action: 'Use an https URL for a server elsewhere.',
  });
}

async function readServerFile(file: string): Promise<string> {
  try {
    return serverFileSchema.parse(JSON.parse(await readSmallFile(file))).url;
  } catch (cause) {
    throw new CodedError('server_unknown', `no running server is named in ${file}: ${messageOf(cause).slice(0, 200)}`, { cause });
  }
}

/** The server's account may put anything there: no link is followed, no pipe waited for, and no more is read than the file can be. */
async function readSmallFile(file: string): Promise<string> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > SERVER_FILE_MAX_BYTES) throw new Error('not a small regular file');
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(SERVER_FILE_MAX_BYTES), 0, SERVER_FILE_MAX_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

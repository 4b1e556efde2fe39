import { readFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { CodedError } from '@firecrew/base';
import { createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { createEgressProxy, type EgressAuditLine, listOwnAddresses, makeChain } from '@firecrew/egress-proxy';
import type { ServerRemote } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';

/**
 * Runs `work` with everything git needs to reach `url`, and nothing more: an egress proxy of its own that lets through that
 * one host and checks every address it resolves to, the operator's credential for the host, and the operator's CA.
 */
export async function withServerRemote<T>(context: ServerContext, url: string, work: (remote: ServerRemote) => Promise<T>): Promise<T> {
  const target = new URL(url);
  if (target.protocol !== 'https:')
    throw new CodedError(
      'repository_url_refused',
      `only https URLs can be reached by this server, not ${target.protocol.replace(':', '')}`,
      { action: 'Use the https URL, or a local path with --repo.' },
    );
  const port = target.port === '' ? 443 : Number(target.port);
  const gate = await startGate(context, target.hostname, port);
  try {
    const { git } = context.config;
    const caFile = git.caFile;
    const login = git.credentials.find((item) => item.host === target.hostname || item.host === target.host);
    const credential =
      login === undefined ? undefined : { username: login.username, password: (await readFile(login.passwordFile, 'utf8')).trim() };
    const config: [string, string][] = [
      ['http.proxy', `http://127.0.0.1:${gate.port}`],
      ['http.followRedirects', 'false'],
      ...(caFile === null ? [] : ([['http.sslCAInfo', caFile]] as [string, string][])),
    ];
    return await work({ remoteUrl: url, config, ...(credential === undefined ? {} : { credential }) });
  } finally {
    await gate.close();
  }
}

async function startGate(context: ServerContext, host: string, port: number): Promise<{ port: number; close(): Promise<void> }> {
  const policy = createPolicy({
    rules: loadAllowList([`${host}:${port}`]),
    addressRules: context.config.git.addressRules,
    ownAddresses: listOwnAddresses(),
  });
  const audit = (line: EgressAuditLine) => context.log.info({ egress: line }, 'git egress');
  const { egressProxy } = context.config;
  const chain = egressProxy === null ? undefined : makeChain(egressProxy, process.env);
  const proxy = createEgressProxy({ policy, audit, ids: { vm: 'server-git' }, ...(chain && { chain }) });
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    proxy.handle(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new CodedError('unavailable', 'the egress proxy for git has no port');
  return {
    port: address.port,
    close: async () => {
      await proxy.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { CodedError } from '@firecrew/base';
import * as z from 'zod';
import type { Home } from '../home/open-home.ts';
import { createFile, readState, readText, replaceFile } from '../home/write-file.ts';
import { checkBackends } from '../settings/backend-files.ts';
import type { Settings } from '../settings/settings.ts';
import { ATTEMPT_OWNERS, serverAccount } from './server-account.ts';

/** Name of the node that runs beside its server. */
export const LOCAL_NODE_NAME = 'local';
const ANY_LOOPBACK_PORT = { host: '127.0.0.1', port: 0 } as const;

/** A database by its parts, as the `pg` driver takes them. */
export const connectionSchema = z.object({
  host: z.string(),
  port: z.int(),
  user: z.string(),
  password: z.string(),
  database: z.string(),
});
export type DatabaseConnection = z.infer<typeof connectionSchema>;

/** How the server reaches its database. */
export type DatabaseTarget = DatabaseConnection | { readonly connectionString: string };

/** What a host that joined another server knows of it. */
export const joinedSchema = z.object({ serverUrl: z.url(), nodeId: z.string(), name: z.string() });
export type Joined = z.infer<typeof joinedSchema>;

/** The server this home's node belongs to, or undefined for a home with its own. Throws `home_damaged`. */
export function readJoined(home: Home): Joined | undefined {
  const { joinFile } = home.paths;
  const joined = readState(joinFile, joinedSchema);
  // One that cannot be read is no sign of a home with a server: another one would be started beside the node's own.
  if (joined === undefined && readText(joinFile) !== undefined) {
    throw new CodedError('home_damaged', `${joinFile} is not what firecrew writes`, {
      id: joinFile,
      action: 'Remove it, and join the server again with firecrew node join.',
    });
  }
  return joined;
}

/** Writes the server's configuration; it is read at its start. */
export function writeServerConfig(home: Home, settings: Settings, database: DatabaseTarget): string {
  const { paths } = home;
  const { lease, git, limits } = settings;
  const backends = checkBackends(settings);
  const config = {
    home: paths.server,
    homeId: home.homeId,
    serverFile: paths.serverFile,
    listen: settings.listen ?? ANY_LOOPBACK_PORT,
    database,
    operatorToken: home.token,
    localNode: { id: home.nodeId, name: LOCAL_NODE_NAME, publicKey: publicKeyOf(home) },
    ...(settings.driverFloor === undefined ? {} : { driverFloor: settings.driverFloor }),
    ...(settings.hostNames === undefined ? {} : { hostNames: settings.hostNames }),
    ...(settings.ceiling === undefined ? {} : { ceiling: settings.ceiling }),
    ...(settings.policyFile === undefined ? {} : { policyFile: settings.policyFile }),
    ...(lease === undefined ? {} : { lease: { ttlMs: lease.ttlMs ?? 300_000, renewEveryMs: lease.renewEveryMs ?? 20_000 } }),
    images: paths.images,
    ...(backends.length === 0 ? {} : { backends }),
    ...(git === undefined ? {} : { git }),
    ...(settings.egressProxy === undefined ? {} : { egressProxy: settings.egressProxy }),
    ...(limits === undefined ? {} : { limits }),
    ...(settings.logLevel === undefined ? {} : { logLevel: settings.logLevel }),
  };
  replaceFile(paths.serverConfig, `${JSON.stringify(config, null, 2)}\n`, serverAccount());
  return paths.serverConfig;
}

/** Writes the node agent's configuration; it is read at its start. */
export function writeNodeConfig(home: Home, settings: Settings): string {
  const { nodeConfig } = home.paths;
  replaceFile(nodeConfig, `${JSON.stringify(nodeConfigOf(home, settings), null, 2)}\n`);
  return nodeConfig;
}

/** The node agent's configuration. Throws `home_damaged`. */
export function nodeConfigOf(home: Home, settings: Settings): Readonly<Record<string, unknown>> {
  const { paths } = home;
  const joined = readJoined(home);
  publicKeyOf(home);
  return {
    home: paths.node,
    ...(joined === undefined ? { serverFile: paths.serverFile } : { serverUrl: joined.serverUrl }),
    nodeId: joined?.nodeId ?? home.nodeId,
    keyFile: paths.nodeKey,
    callerPath: callerPath(home),
    owners: process.getuid?.() === 0 ? ATTEMPT_OWNERS : null,
    ...(settings.bubblewrap === undefined ? {} : { bubblewrap: settings.bubblewrap }),
    // Without an accelerator that somebody named, no VM is booted: there is none that can be assumed.
    ...(settings.qemu?.accelerator === undefined ? {} : { qemu: { ...settings.qemu, store: paths.images } }),
    ...(settings.firecracker === undefined ? {} : { firecracker: { ...settings.firecracker, store: paths.images } }),
    ...(settings.imageFetch === undefined ? {} : { imageFetch: settings.imageFetch }),
    ...(settings.setupLayers === undefined ? {} : { setupLayers: settings.setupLayers }),
    ...(settings.egressProxy === undefined ? {} : { egressProxy: settings.egressProxy }),
    ...(settings.modelRoutes === undefined ? {} : { modelRoutes: settings.modelRoutes }),
    ...(settings.logLevel === undefined ? {} : { logLevel: settings.logLevel }),
    allowHttp: true,
  };
}

/** The PATH whose programs attempts of the process driver may use: that of the last caller. */
export function callerPath(home: Home): string {
  return readText(home.paths.callerPath) ?? process.env.FIRECREW_CALLER_PATH ?? process.env.PATH ?? '/usr/bin:/bin';
}

/** The node's public key (SPKI DER, base64); its private key is made when it is first asked for. */
export function publicKeyOf(home: Home): string {
  const { nodeKey } = home.paths;
  if (readText(nodeKey) === undefined) {
    const { privateKey } = generateKeyPairSync('ed25519');
    createFile(nodeKey, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  }
  try {
    const key = createPublicKey(createPrivateKey(readText(nodeKey) ?? ''));
    return key.export({ type: 'spki', format: 'der' }).toString('base64');
  } catch (cause) {
    throw new CodedError('home_damaged', `${nodeKey} holds no private key`, {
      id: nodeKey,
      action: 'Restore it from a backup, or remove it: a new one is made, with which a node of another server joins again.',
      cause,
    });
  }
}

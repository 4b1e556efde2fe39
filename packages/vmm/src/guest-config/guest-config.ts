import { dirname } from 'node:path';
import { GENERATION } from '@firecrew/protocol';
import type { BootSpec, GuestPaths } from '../port/driver.ts';

/** Longest time that a VM goes on without its host, in `ms`: a link that broke is back within seconds, and who should end the VM may be gone. */
export const GUEST_ALONE_MS = 600_000;

/** Where things are for the guest agent, which depends on what it runs in. */
export interface GuestPlace {
  readonly paths: GuestPaths & { readonly state: string };
  /** Socket that the agent dials. */
  readonly socketPath: string;
  /** Loopback ports; 0 lets the kernel choose. */
  readonly ports: { readonly proxy: number; readonly model: number };
  /** PEM file of further roots as the guest sees it; null for none. */
  readonly caBundle: string | null;
  /** The agent ends when the descriptor of its configuration closes. */
  readonly lifeline: boolean;
  /** The byte stream behind the socket outlives both ends. */
  readonly resync: boolean;
  /** Folders that the agent makes before anything else, each with its parents. */
  readonly folders: readonly string[];
  /** Account that commands run as; null: the agent's own. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** Files of `/etc` that the agent writes where the image has none or an empty one. */
  readonly etc: Readonly<Record<string, string>>;
  /** PATH of every exec. */
  readonly searchPath: string;
  /** Variables that the image declares; they hold for every exec, but for those that say where a guest keeps its things. */
  readonly imageEnvironment: Readonly<Record<string, string>>;
}

/** The configuration of the guest agent of one VM; the agent parses it strictly. It holds the VM's secret. */
export function guestConfig(
  spec: Pick<BootSpec, 'modelRoute' | 'attemptMarker' | 'environment'>,
  place: GuestPlace,
  secret: Uint8Array,
): Readonly<Record<string, unknown>> {
  const { paths } = place;
  return {
    generation: GENERATION,
    secret: Buffer.from(secret).toString('hex'),
    socketPath: place.socketPath,
    resync: place.resync,
    ports: place.ports,
    modelRoute: spec.modelRoute ?? false,
    stateFolder: paths.state,
    folders: place.folders,
    user: place.user,
    etc: place.etc,
    attemptMarker: spec.attemptMarker,
    lifeline: place.lifeline,
    aloneMs: place.lifeline ? null : GUEST_ALONE_MS,
    environment: {
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      PYTHONUNBUFFERED: '1',
      ...place.imageEnvironment,
      PATH: place.searchPath,
      HOME: paths.home,
      TMPDIR: paths.tmp,
      USER: 'agent',
      LOGNAME: 'agent',
      ...(place.caBundle === null ? {} : { NODE_EXTRA_CA_CERTS: place.caBundle }),
      ...spec.environment,
    },
    platform: { FIRECREW_AGENT_DIR: paths.agentDir },
  };
}

/** A PATH of absolute folders, with that of the pinned Node after them. */
export function searchPath(path: string, node: string): string {
  return [...path.split(':').filter((part) => part.startsWith('/')), dirname(node)].join(':');
}

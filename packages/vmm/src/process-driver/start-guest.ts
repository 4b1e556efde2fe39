import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Writable } from 'node:stream';
import { GENERATION, MODEL_PORT, PROXY_PORT } from '@firecrew/protocol';
import type { BootSpec, GuestPaths, VmExit } from '../port/driver.ts';
import { ATTEMPT_VARIABLE } from '../processes/marked-processes.ts';
import { bubblewrapOptions, PAYLOAD } from './bubblewrap-options.ts';
import { type GuestFolder, guestPaths } from './guest-layout.ts';
import type { BubblewrapProbe } from './probe-bubblewrap.ts';

/** Lines of the guest agent's own log that go into an error, and bytes of it that are read. */
export const LOG_TAIL_LINES = 10;
export const LOG_TAIL_BYTES = 8192;
/** Descriptors of the started process. */
const CONFIG_FD = 3;
const OPTIONS_FD = 4;
/** A tree on its way makes many short-lived buffers; a small young generation lets go of them early. */
const AGENT_OPTIONS = ['--max-semi-space-size=1'];

/** The process of a guest: bubblewrap, or the guest agent itself. */
export interface GuestProcess {
  readonly pid: number;
  readonly exited: Promise<VmExit>;
  readonly paths: GuestPaths;
  /** Ends the guest agent without bubblewrap: it watches this descriptor. */
  readonly lifeline: Writable;
}

/** Starts the guest agent under bubblewrap, or as it is. Rejects with the error of the start. */
export async function startGuest(
  spec: BootSpec,
  places: GuestFolder,
  secret: Uint8Array,
  bubblewrap: Extract<BubblewrapProbe, { usable: true }> | undefined,
): Promise<GuestProcess> {
  const isolated = bubblewrap !== undefined;
  const paths = guestPaths(isolated ? '/' : places.root);
  const config = guestConfig(spec, { paths, secret, isolated, socketPath: isolated ? PAYLOAD.socketPath : places.socketPath });
  const agent = isolated
    ? [PAYLOAD.node, ...AGENT_OPTIONS, PAYLOAD.bundle]
    : [spec.guestAgent.node, ...AGENT_OPTIONS, spec.guestAgent.bundle];
  const command = [...agent, '--config-fd', String(CONFIG_FD)];
  const options = isolated ? await bubblewrapOptions(spec, places, bubblewrap.disableUserns) : [];
  const argv = isolated ? [bubblewrap.program, '--args', String(OPTIONS_FD), '--', ...command] : command;
  const log = await open(places.log, 'ax', 0o600);
  try {
    const [program = '', ...rest] = argv;
    const child = spawn(program, rest, {
      cwd: isolated ? '/' : places.root,
      env: agentEnvironment(spec, isolated, paths),
      stdio: ['ignore', log.fd, log.fd, 'pipe', isolated ? 'pipe' : 'ignore'],
      detached: true,
      ...spec.owner,
    });
    const exited = exitOf(child);
    await spawned(child);
    const lifeline = writableOf(child, CONFIG_FD);
    lifeline.write(`${JSON.stringify(config)}\n`);
    if (isolated) writableOf(child, OPTIONS_FD).end(Buffer.from(options.map((option) => `${option}\0`).join('')));
    return { pid: child.pid ?? 0, exited, paths, lifeline };
  } finally {
    await log.close();
  }
}

/** The last lines of the guest agent's log as one text for a message. */
export async function logTail(places: GuestFolder): Promise<string> {
  try {
    const text = await readTail(places.log);
    const lines = text
      .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '?')
      .split('\n')
      .filter((line) => line !== '');
    return lines.length === 0 ? 'it logged nothing' : lines.slice(-LOG_TAIL_LINES).join(' | ');
  } catch {
    return 'its log could not be read';
  }
}

/** The end of a file that a guest may have made as large as it liked. */
async function readTail(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - LOG_TAIL_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LOG_TAIL_BYTES), 0, LOG_TAIL_BYTES, from);
    return buffer.subarray(0, bytesRead).toString('utf8');
  } finally {
    await file.close();
  }
}

function guestConfig(
  spec: BootSpec,
  guest: { paths: GuestPaths & { state: string }; secret: Uint8Array; isolated: boolean; socketPath: string },
): Readonly<Record<string, unknown>> {
  const { paths, secret, isolated, socketPath } = guest;
  const caBundle = isolated ? PAYLOAD.caBundle : spec.caBundle;
  return {
    generation: GENERATION,
    secret: Buffer.from(secret).toString('hex'),
    socketPath,
    ports: isolated ? { proxy: PROXY_PORT, model: MODEL_PORT } : { proxy: 0, model: 0 },
    modelRoute: spec.modelRoute ?? false,
    stateFolder: paths.state,
    attemptMarker: spec.attemptMarker,
    lifeline: true,
    environment: {
      PATH: searchPath(spec, isolated),
      HOME: paths.home,
      TMPDIR: paths.tmp,
      USER: 'agent',
      LOGNAME: 'agent',
      SHELL: '/bin/sh',
      LANG: 'C.UTF-8',
      TERM: 'dumb',
      PYTHONUNBUFFERED: '1',
      ...(spec.caBundle === null || caBundle === null ? {} : { NODE_EXTRA_CA_CERTS: caBundle }),
      ...spec.environment,
    },
    platform: { FIRECREW_AGENT_DIR: paths.agentDir },
  };
}

/** The environment of the guest agent itself; no variable of the host's comes in. */
function agentEnvironment(spec: BootSpec, isolated: boolean, paths: GuestPaths): Record<string, string> {
  const own = isolated ? {} : { HOME: paths.home, TMPDIR: paths.tmp };
  return { ...own, PATH: searchPath(spec, isolated), [ATTEMPT_VARIABLE]: spec.attemptMarker };
}

function searchPath(spec: BootSpec, isolated: boolean): string {
  const pinned = dirname(isolated ? PAYLOAD.node : spec.guestAgent.node);
  return [...spec.path.split(':').filter((part) => part.startsWith('/')), pinned].join(':');
}

function exitOf(child: ChildProcess): Promise<VmExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', () => resolve({ code: null, signal: null }));
  });
}

function spawned(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

function writableOf(child: ChildProcess, fd: number): Writable {
  const stream = child.stdio[fd];
  if (!(stream instanceof Writable)) throw new TypeError(`descriptor ${fd} of the guest is no pipe`);
  // The guest may be gone before it has read all.
  stream.on('error', () => undefined);
  return stream;
}

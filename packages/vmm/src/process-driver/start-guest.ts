import { type ChildProcess, spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { Writable } from 'node:stream';
import { MODEL_PORT, PROXY_PORT } from '@firecrew/protocol';
import { type GuestPlace, guestConfig, searchPath } from '../guest-config/guest-config.ts';
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
  const place = placeOf(spec, isolated, places);
  const { paths } = place;
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
      env: agentEnvironment(spec, isolated, place),
      stdio: ['ignore', log.fd, log.fd, 'pipe', isolated ? 'pipe' : 'ignore'],
      detached: true,
      ...spec.owner,
    });
    const exited = exitOf(child);
    await spawned(child);
    const lifeline = writableOf(child, CONFIG_FD);
    lifeline.write(`${JSON.stringify(guestConfig(spec, place, secret))}\n`);
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

function placeOf(spec: BootSpec, isolated: boolean, places: GuestFolder): GuestPlace {
  const paths = guestPaths(isolated ? '/' : places.root);
  return {
    paths,
    socketPath: isolated ? PAYLOAD.socketPath : places.socketPath,
    ports: isolated ? { proxy: PROXY_PORT, model: MODEL_PORT } : { proxy: 0, model: 0 },
    caBundle: isolated && spec.caBundle !== null ? PAYLOAD.caBundle : spec.caBundle,
    lifeline: true,
    imageEnvironment: {},
    resync: false,
    folders: [],
    user: null,
    etc: {},
    searchPath: searchPath(spec.path, isolated ? PAYLOAD.node : spec.guestAgent.node),
  };
}

/** The environment of the guest agent itself; no variable of the host's comes in. */
function agentEnvironment(spec: BootSpec, isolated: boolean, place: GuestPlace): Record<string, string> {
  const own = isolated ? {} : { HOME: place.paths.home, TMPDIR: place.paths.tmp };
  return { ...own, PATH: place.searchPath, [ATTEMPT_VARIABLE]: spec.attemptMarker };
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

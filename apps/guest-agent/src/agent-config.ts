import { readFile, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';

/** Bytes of the configuration, at most. */
export const MAX_CONFIG_BYTES = 1024 * 1024;

/** Folders that a configuration may have made. */
export const MAX_FOLDERS = 64;

/** The account that commands run as, where that is another than the agent's own. */
export interface ExecUser {
  readonly uid: number;
  readonly gid: number;
}

/** What the host tells the guest agent before it dials. */
export interface AgentConfig {
  readonly generation: number;
  /** 32 bytes; never in an argument, an environment or a log. */
  readonly secret: Buffer;
  readonly socketPath: string;
  /** The stream behind the socket outlives the processes at its ends: begin each dial with padding. */
  readonly resync: boolean;
  /** Loopback ports; 0 lets the kernel choose. */
  readonly ports: { readonly proxy: number; readonly model: number };
  readonly modelRoute: boolean;
  /** Private folder for the output of execs. */
  readonly stateFolder: string;
  /** Folders made before anything runs, where they are missing; at most `MAX_FOLDERS`. */
  readonly folders: readonly string[];
  /** Commands and what is put into the guest are this account's; null: the agent's own. What is read-only stays the agent's. */
  readonly user: ExecUser | null;
  /** Files of `/etc` by name, written where there is none or an empty one. */
  readonly etc: Readonly<Record<string, string>>;
  readonly attemptMarker: string;
  /** Variables of every exec, below the caller's and above them. */
  readonly environment: Readonly<Record<string, string>>;
  readonly platform: Readonly<Record<string, string>>;
  /** End when the descriptor of the configuration closes: then the host's process is gone. */
  readonly lifeline: boolean;
  /** Longest time without a session before the agent gives its host up and ends, in `ms`; null: for ever. */
  readonly aloneMs: number | null;
}

/** A configuration and, where it came over a descriptor, the end of that. */
export interface ReadConfig {
  readonly config: AgentConfig;
  readonly lifelineEnd: Promise<void> | undefined;
}

/**
 * Reads the configuration: one line of JSON on the descriptor of `--config-fd`, or the file of `--config-file`, which is removed
 * before anything else runs. Throws `bad_agent_config`.
 */
export async function readConfig(args: readonly string[]): Promise<ReadConfig> {
  const [option, value = ''] = args;
  if (option === '--config-file') {
    const text = await readFile(value, 'utf8');
    await rm(value);
    return { config: parseConfig(text), lifelineEnd: undefined };
  }
  if (option !== '--config-fd' || !/^[0-9]{1,4}$/.test(value)) {
    throw badConfig('start it with --config-fd NUMBER or --config-file PATH');
  }
  // A pipe or socket is read by the event loop; a file stream would hold a thread of the pool for as long as it is open.
  const stream = new Socket({ fd: Number(value), readable: true, writable: false });
  const line = await readLine(stream);
  const config = parseConfig(line);
  return { config, lifelineEnd: config.lifeline ? endOf(stream) : undefined };
}

function readLine(stream: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const onEnd = (): void => reject(badConfig('the descriptor closed before its first line had ended'));
    const onData = (part: Buffer): void => {
      bytes = Buffer.concat([bytes, part]);
      const end = bytes.indexOf(0x0a);
      if (end < 0 && bytes.length <= MAX_CONFIG_BYTES) return;
      stream.off('data', onData).off('end', onEnd);
      if (end < 0) reject(badConfig(`it is longer than ${MAX_CONFIG_BYTES} bytes`));
      else resolve(bytes.subarray(0, end).toString('utf8'));
    };
    stream.on('data', onData).on('end', onEnd).on('error', reject);
  });
}

function endOf(stream: Socket): Promise<void> {
  return new Promise((resolve) => {
    stream
      .on('end', resolve)
      .on('close', () => resolve())
      .on('error', () => resolve())
      .resume();
  });
}

/** Parses a configuration strictly: each field is there and of its form, and there is no other. */
export function parseConfig(text: string): AgentConfig {
  const fields = new Map(Object.entries(parseObject(text)));
  const take = <Value>(name: string, isValid: (value: unknown) => value is Value): Value => {
    const value = fields.get(name);
    fields.delete(name);
    if (!isValid(value)) throw badConfig(`"${name}" is missing or has another form`);
    return value;
  };
  const ports = new Map<string, unknown>(Object.entries(take('ports', isRecord)));
  const proxy = ports.get('proxy');
  const model = ports.get('model');
  if (!isPort(proxy) || !isPort(model)) throw badConfig('"ports" has another form');
  const config: AgentConfig = {
    generation: take('generation', isPositive),
    secret: Buffer.from(take('secret', isSecret), 'hex'),
    socketPath: take('socketPath', isPath),
    resync: take('resync', isBoolean),
    ports: { proxy, model },
    modelRoute: take('modelRoute', isBoolean),
    stateFolder: take('stateFolder', isPath),
    folders: take('folders', isFolders),
    user: take('user', isUser),
    etc: take('etc', isEtc),
    attemptMarker: take('attemptMarker', isText),
    environment: take('environment', isEnvironment),
    platform: take('platform', isEnvironment),
    lifeline: take('lifeline', isBoolean),
    aloneMs: take('aloneMs', isTime),
  };
  const unknown = [...fields.keys()][0];
  if (unknown !== undefined) throw badConfig(`"${unknown}" is not a field of this generation`);
  return config;
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The parser quotes what it read, and that holds the secret.
    throw badConfig(`it is not JSON (${messageOf(error).split(' ')[0] ?? 'error'})`);
  }
  if (!isRecord(value)) throw badConfig('it is no object');
  return value;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && !value.includes('\0');
const isPath = (value: unknown): value is string => isText(value) && value.startsWith('/');
const isUser = (value: unknown): value is ExecUser | null =>
  value === null || (isRecord(value) && Object.keys(value).sort().join() === 'gid,uid' && isPositive(value.uid) && isPositive(value.gid));
const isEtc = (value: unknown): value is Readonly<Record<string, string>> =>
  isRecord(value) && Object.entries(value).every(([name, text]) => /^[a-z][a-z.]{0,40}$/.test(name) && typeof text === 'string');
const isFolders = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length <= MAX_FOLDERS && value.every(isPath);
const isSecret = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isPositive = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0;
const isTime = (value: unknown): value is number | null => value === null || isPositive(value);
const isPort = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535;
const isEnvironment = (value: unknown): value is Readonly<Record<string, string>> =>
  isRecord(value) &&
  Object.entries(value).every(([name, text]) => /^[^=\0]+$/.test(name) && typeof text === 'string' && !text.includes('\0'));

function badConfig(why: string): CodedError {
  return new CodedError('bad_agent_config', `The configuration of the guest agent cannot be used: ${why}.`, {
    action: 'Start it with the host side of the same version.',
  });
}

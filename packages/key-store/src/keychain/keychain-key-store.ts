import { formatKeyAddress, type KeyAddress, type KeyStore, type StoreChange, type StoredKey, type StoreRead } from '@firecrew/seat-keys';
import { formatEntry, parseEntry } from '../entry.ts';
import type { KeychainTool } from './keychain-tool.ts';
import { HELPER_TIMEOUT_MS } from './run-helper.ts';
import { SecretTool } from './secret-tool.ts';
import { SecurityTool } from './security-tool.ts';

/** First part of an entry in a keychain: whose it is, and its format. */
const HEAD = 'firecrew1.';

/** How a keychain is reached. */
export interface KeychainOptions {
  /** `process.platform`. */
  readonly platform: string;
  /** Where its tool is looked for, and how that finds its service. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How long one call of the tool may take, in ms; default {@link HELPER_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
}

/** The tool of a platform's keychain, or undefined where there is none that is known. */
export function keychainProgram(platform: string): 'secret-tool' | 'security' | undefined {
  if (platform === 'linux') return 'secret-tool';
  return platform === 'darwin' ? 'security' : undefined;
}

/**
 * Keys in the keychain of the operating system, by its own tool: `secret-tool` on Linux, `security` on macOS. Secrets go to the tool on its
 * standard input and come from its standard output; none is in an argument of a process. An entry counts as written when it was read back. A
 * keychain that is locked, silent or not there is `unreadable`, never absent. On another platform all is `helper_missing`.
 */
export class KeychainKeyStore implements KeyStore {
  readonly #tool: KeychainTool | undefined;

  constructor({ platform, env, timeoutMs = HELPER_TIMEOUT_MS }: KeychainOptions) {
    const program = keychainProgram(platform);
    const place = { env, timeoutMs };
    this.#tool = program === undefined ? undefined : program === 'security' ? new SecurityTool(place) : new SecretTool(place);
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const account = formatKeyAddress(address);
    if (this.#tool === undefined) return { status: 'unreadable', error: { fault: 'helper_missing' } };
    const found = await this.#tool.lookup(account);
    if (found.status === 'absent') return found;
    if (found.status === 'failed') return { status: 'unreadable', error: found.error };
    const record = decode(found.text, account);
    return record === undefined ? { status: 'unreadable', error: { fault: 'corrupt' } } : { status: 'found', record };
  }

  async write(address: KeyAddress, record: StoredKey): Promise<StoreChange> {
    const account = formatKeyAddress(address);
    if (this.#tool === undefined) return { status: 'failed', error: { fault: 'helper_missing' } };
    const text = encode(record, account);
    if (text.length > this.#tool.maxBytes) return { status: 'failed', error: { fault: 'io', systemCode: 'EFBIG' } };
    const stored = await this.#tool.store(account, text);
    if (stored.status === 'failed') return stored;
    const back = await this.#tool.lookup(account);
    if (back.status === 'failed') return back;
    return back.status === 'found' && back.text === text ? { status: 'done' } : { status: 'failed', error: { fault: 'corrupt' } };
  }

  async clear(address: KeyAddress): Promise<StoreChange> {
    const account = formatKeyAddress(address);
    return (await this.#tool?.remove(account)) ?? { status: 'failed', error: { fault: 'helper_missing' } };
  }
}

/** An entry of ASCII that no tool has to quote, with its account in it: one that was moved is not used. */
function encode(record: StoredKey, account: string): string {
  return `${HEAD}${Buffer.from(JSON.stringify([account, formatEntry(record)])).toString('base64url')}`;
}

function decode(text: string, account: string): StoredKey | undefined {
  if (!text.startsWith(HEAD) || !/^[A-Za-z0-9_-]+$/.test(text.slice(HEAD.length))) return undefined;
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text.slice(HEAD.length), 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== 2 || parts[0] !== account || typeof parts[1] !== 'string') return undefined;
  return parseEntry(parts[1]);
}

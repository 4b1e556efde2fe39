import type { StoreError } from '@firecrew/seat-keys';
import { type Change, faultOf, type KeychainTool, type Lookup, SERVICE } from './keychain-tool.ts';
import { type HelperPlace, runHelper } from './run-helper.ts';

/** Exit codes of `security`: the last byte of a status of the Security framework. */
const NOT_FOUND = 44;
const FAULTS: ReadonlyMap<number, StoreError['fault']> = new Map([
  [36, 'locked'], // errSecInteractionNotAllowed
  [128, 'locked'], // errSecUserCanceled
  [51, 'denied'], // errSecAuthFailed
  [52, 'denied'], // errSecReadOnly
  [37, 'service_missing'], // errSecNoDefaultKeychain
  [50, 'service_missing'], // errSecNoSuchKeychain
  [53, 'service_missing'], // errSecNotAvailable
]);

/**
 * The login keychain of macOS by `security`. It takes a secret as an argument only, so a write is a line on the standard input of
 * `security -i`: the argument of a command within the tool, in no process list. A line has at most 4,095 bytes.
 */
export class SecurityTool implements KeychainTool {
  /** What a line leaves beside the command and an account of at most 1,000 bytes. */
  readonly maxBytes = 3_000;
  readonly #place: HelperPlace;

  constructor(place: HelperPlace) {
    this.#place = place;
  }

  async lookup(account: string): Promise<Lookup> {
    const end = await this.#run(['find-generic-password', '-s', SERVICE, '-a', account, '-w']);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    if (end.code === NOT_FOUND) return { status: 'absent' };
    if (end.code !== 0) return { status: 'failed', error: errorOf(end) };
    return { status: 'found', text: end.stdout.replace(/\n$/, '') };
  }

  async store(account: string, text: string): Promise<Change> {
    if (account.length > 1_000) return { status: 'failed', error: { fault: 'io', systemCode: 'EFBIG' } };
    const line = `add-generic-password -U -s ${SERVICE} -a "${account}" -w "${text}"\n`;
    const end = await runHelper({ program: 'security', args: ['-i'], input: line }, this.#place);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    // Its own exit code need not be that of the command, whose status it tells instead. What was written is read back by the caller.
    const told = /: returned (-?\d{1,9})\b/.exec(end.stderr)?.[1];
    const code = told === undefined ? end.code : Number(told) & 0xff;
    return code === 0 ? { status: 'done' } : { status: 'failed', error: errorOf({ code, stderr: end.stderr }) };
  }

  async remove(account: string): Promise<Change> {
    const end = await this.#run(['delete-generic-password', '-s', SERVICE, '-a', account]);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    return end.code === 0 || end.code === NOT_FOUND ? { status: 'done' } : { status: 'failed', error: errorOf(end) };
  }

  async #run(args: readonly string[]) {
    return await runHelper({ program: 'security', args }, this.#place);
  }
}

function errorOf({ code, stderr }: { readonly code: number; readonly stderr: string }): StoreError {
  const fault = FAULTS.get(code);
  return fault === undefined ? faultOf(code, stderr) : { fault, exitCode: code };
}

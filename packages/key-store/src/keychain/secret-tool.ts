import { type Change, faultOf, type KeychainTool, type Lookup, SERVICE } from './keychain-tool.ts';
import { type HelperPlace, runHelper } from './run-helper.ts';

/**
 * The Secret Service of a Linux desktop by `secret-tool` of libsecret. The tool reads a secret from its standard input, at most 8,191 bytes of it.
 * Its exit code 1 with no word of error means "nothing there", but also "locked, and the person dismissed the prompt": so `search`, which
 * names entries that are locked, is asked before anything is called absent.
 */
export class SecretTool implements KeychainTool {
  readonly maxBytes = 8_191;
  readonly #place: HelperPlace;

  constructor(place: HelperPlace) {
    this.#place = place;
  }

  async lookup(account: string): Promise<Lookup> {
    const end = await this.#run('lookup', account);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    if (end.code === 0) return { status: 'found', text: end.stdout };
    if (!isSilent(end)) return { status: 'failed', error: faultOf(end.code, end.stderr) };
    return await this.#whyNothing(account);
  }

  async store(account: string, text: string): Promise<Change> {
    const label = `--label=Firecrew seat key ${account}`;
    const end = await runHelper({ program: 'secret-tool', args: ['store', label, ...attributes(account)], input: text }, this.#place);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    return end.code === 0 ? { status: 'done' } : { status: 'failed', error: faultOf(end.code, end.stderr) };
  }

  async remove(account: string): Promise<Change> {
    const end = await this.#run('clear', account);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    if (end.code !== 0 && !isSilent(end)) return { status: 'failed', error: faultOf(end.code, end.stderr) };
    // Versions differ in what they answer where nothing was removed, so what is left is looked at.
    const left = await this.#whyNothing(account);
    return left.status === 'absent' ? { status: 'done' } : left;
  }

  /** Absent only where a search, which unlocks nothing, finds nothing either. */
  async #whyNothing(account: string): Promise<{ status: 'absent' } | Extract<Lookup, { status: 'failed' }>> {
    const end = await this.#run('search', account);
    if (end.status === 'broken') return { status: 'failed', error: end.error };
    if (end.code !== 0) return { status: 'failed', error: faultOf(end.code, end.stderr) };
    return isSilent(end) ? { status: 'absent' } : { status: 'failed', error: { fault: 'locked' } };
  }

  async #run(action: 'lookup' | 'clear' | 'search', account: string) {
    return await runHelper({ program: 'secret-tool', args: [action, ...attributes(account)] }, this.#place);
  }
}

function attributes(account: string): string[] {
  return ['service', SERVICE, 'account', account];
}

function isSilent({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): boolean {
  return stdout === '' && stderr.trim() === '';
}

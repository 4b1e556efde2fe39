import { type Backend, loadBackends } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import type { OperatorPolicy } from '@firecrew/egress-policy';
import {
  type LoadedPolicy,
  type LoadOptions,
  loadPolicyFile,
  loadPolicyText,
  policyOfCeiling,
  readPolicyText,
} from '@firecrew/policy-file';
import type { Logger } from 'pino';
import type { ServerConfig } from '../config.ts';

/** What became of a look at the policy file. */

export type ReloadResult = 'same' | 'replaced' | 'refused';

type PolicyConfig = Pick<ServerConfig, 'policyFile' | 'ceiling' | 'backends'>;

/** Holds the operator's policy of this server: one that may be used takes the place of the one before as a whole, and no other does. */
export class PolicyDesk {
  readonly #config: PolicyConfig;
  /** All that there are: the builtin ones, and those of the configuration. */
  readonly backends: readonly Backend[];
  readonly #log: Logger;
  #loaded: LoadedPolicy;
  /** What was wrong with the file at the last look, so that it is told once. */
  #fault: string | undefined;
  /** The text of the last look, which is not judged again by itself. */
  #text: string | undefined;
  #looking: Promise<unknown> = Promise.resolve();
  #listener: () => Promise<void> = async () => undefined;
  readonly #results = new Map<ReloadResult, number>();

  private constructor(config: PolicyConfig, log: Logger, loaded: LoadedPolicy) {
    this.#config = config;
    this.backends = loadBackends(config.backends);
    this.#log = log;
    this.#loaded = loaded;
  }

  /** Reads the policy that the configuration names. Throws `policy_unreadable` and `policy_invalid`: without one, nothing starts. */
  static async open(config: PolicyConfig, log: Logger): Promise<PolicyDesk> {
    return new PolicyDesk(config, log, await loadConfigured(config));
  }

  get policy(): OperatorPolicy {
    return this.#loaded.policy;
  }

  /** Where it is from, and the digest of its content. */
  get origin(): Pick<LoadedPolicy, 'source' | 'digest'> {
    return this.#loaded;
  }

  /** Whether the file is one that could be used when it was last looked at. */
  get fileIsGood(): boolean {
    return this.#fault === undefined;
  }

  /** How often a look came to what; looks that found nothing new are not counted. */
  get results(): ReadonlyMap<ReloadResult, number> {
    return this.#results;
  }

  /** Sets who is called after another policy has taken its place. */
  onReplaced(listener: () => Promise<void>): void {
    this.#listener = listener;
  }

  /**
   * Looks at the file now. One that cannot be used changes nothing; that is logged once for each fault, and counted. A text that was judged
   * before is judged again only when `anew` is said, since its registries may be others by now. Never rejects.
   */
  async reload(anew = false): Promise<ReloadResult> {
    const look = this.#looking.then(() => this.#look(anew));
    this.#looking = look;
    return await look;
  }

  async #look(anew: boolean): Promise<ReloadResult> {
    const before = this.#loaded.digest;
    try {
      const { policyFile } = this.#config;
      // Settings are read at the start alone.
      if (policyFile === null) return 'same';
      const seen = this.#text;
      this.#text = undefined;
      const text = await readPolicyText(policyFile);
      this.#text = text;
      if (text === seen && !anew) return this.fileIsGood ? 'same' : 'refused';
      const loaded = await loadPolicyText(text, policyFile, loadOptions(this.backends));
      this.#fault = undefined;
      if (loaded.digest === before) return 'same';
      this.#loaded = loaded;
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== this.#fault) {
        const code = error instanceof CodedError ? error.code : 'internal';
        this.#log.error({ code, detail: fault, kept: before }, 'the changed policy cannot be used; the one before stays');
        this.#count('refused');
      }
      this.#fault = fault;
      return 'refused';
    }
    this.#count('replaced');
    this.#log.info({ source: this.#loaded.source, before, digest: this.#loaded.digest }, 'the policy was replaced');
    await this.#listener().catch((error: unknown) => this.#log.error({ err: error }, 'the changed policy could not be told to every node'));
    return 'replaced';
  }

  #count(result: ReloadResult): void {
    this.#results.set(result, (this.#results.get(result) ?? 0) + 1);
  }
}

async function loadConfigured({ policyFile, ceiling, backends }: PolicyConfig): Promise<LoadedPolicy> {
  if (policyFile === null) return policyOfCeiling(ceiling);
  return await loadPolicyFile(policyFile, loadOptions(loadBackends(backends)));
}

function loadOptions(backends: readonly Backend[]): LoadOptions {
  return { backends: backends.map(({ name }) => name), env: process.env };
}

import { builtinBackends } from '@firecrew/backend';
import type { OperatorPolicy } from '@firecrew/egress-policy';
import { type LoadedPolicy, loadPolicyFile, policyOfCeiling } from '@firecrew/policy-file';
import type { ServerConfig } from '../config.ts';

/** Holds the operator's policy of this server. */
export class PolicyDesk {
  #loaded: LoadedPolicy;

  private constructor(loaded: LoadedPolicy) {
    this.#loaded = loaded;
  }

  /** Reads the policy that the configuration names. Throws `policy_unreadable` and `policy_invalid`: without one, nothing starts. */
  static async open(config: Pick<ServerConfig, 'policyFile' | 'ceiling'>): Promise<PolicyDesk> {
    return new PolicyDesk(await loadConfigured(config));
  }

  get policy(): OperatorPolicy {
    return this.#loaded.policy;
  }

  /** Where it is from, and the digest of its content. */
  get origin(): Pick<LoadedPolicy, 'source' | 'digest'> {
    return this.#loaded;
  }
}

async function loadConfigured({ policyFile, ceiling }: Pick<ServerConfig, 'policyFile' | 'ceiling'>): Promise<LoadedPolicy> {
  if (policyFile === null) return policyOfCeiling(ceiling);
  return await loadPolicyFile(policyFile, { backends: builtinBackends.map(({ name }) => name) });
}

import type { Duplex } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { describePolicy, type EgressPolicy, effectivePolicy, loadAllowList } from '@firecrew/egress-policy';
import {
  BudgetBook,
  type ChainOptions,
  createEgressProxy,
  type EgressAuditLine,
  type EgressProxy,
  listOwnAddresses,
  SummaryBook,
} from '@firecrew/egress-proxy';
import type { EgressLine, EgressSummary, TurnEgress, TurnSpec } from '@firecrew/protocol';

export type EgressPurpose = EgressLine['purpose'];

/** Refusals of one kind (host, port, reason) that get a line each; more are only counted in the summary. */
export const MAX_REFUSAL_LINES_PER_KIND = 100;
/** Audit lines of one attempt. Beyond them nothing leaves any more, and the attempt ends: no line, no tunnel. */
export const MAX_EGRESS_LINES = 50_000;

/** What a turn may reach, by its specification or as it was told later. */
type Reach = Omit<TurnEgress, 'revision'>;

/** What the gate needs of its attempt. */
export interface GateOptions {
  readonly spec: TurnSpec;
  readonly leaseValid: () => boolean;
  /** Writes one audit line before this returns; it throws when it could not. */
  readonly audit: (line: EgressLine) => void;
  /** Addresses of the server, which no guest may reach; the host's own are known. */
  readonly serverAddresses: readonly string[];
  /** Notes what each part of the attempt may reach, when its proxy starts and when that changes. */
  readonly note?: (text: string) => void;
  /** The operator's own proxy, where there is one. */
  readonly chain?: ChainOptions | undefined;
}

/**
 * The only way out of the attempt's guests. Set-up has a policy of its own, so there is a proxy for each purpose; what opens a
 * tunnel is judged by the purpose of the moment, and the tunnels of the one before are cut.
 */
export class EgressGate {
  readonly #options: GateOptions;
  readonly #summary = new SummaryBook();
  /** One for the whole attempt: set-up, agent and check use up the same budgets. */
  readonly #budgets = new BudgetBook();
  #lines = 0;
  /** The highest number of a connection so far: each proxy counts from 1, and an audit tells connections apart by it. */
  #connections = 0;
  #reach: Reach;
  #revision: string | undefined;
  #wasReplaced = false;
  #current: { purpose: EgressPurpose; proxy: EgressProxy } | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
    const { egress, setup } = options.spec;
    this.#reach = { ...egress, setupAllow: setup?.allow ?? [] };
  }

  /** Opens the gate for a purpose, closing it for the one before. */
  async open(purpose: EgressPurpose): Promise<void> {
    await this.close();
    this.#current = { purpose, proxy: this.#makeProxy(purpose) };
  }

  /**
   * Takes what the turn may reach from now on, as a whole and at once: open tunnels that it does not allow are cut. Gives how many were,
   * or `same`. Throws `EgressConfigError` for lists that cannot be used, and then nothing has changed.
   */
  replace({ revision, ...reach }: TurnEgress): { readonly cut: number } | 'same' {
    if (JSON.stringify(sorted(reach)) === JSON.stringify(sorted(this.#reach))) {
      this.#revision = revision;
      return 'same';
    }
    // Both are made before either is used: what cannot be read replaces nothing.
    const { serverAddresses } = this.#options;
    const policies = { setup: policyOf(reach, 'setup', serverAddresses), run: policyOf(reach, 'agent', serverAddresses) };
    this.#reach = reach;
    this.#revision = revision;
    this.#wasReplaced = true;
    const { purpose, proxy } = this.#current ?? {};
    if (purpose === undefined || proxy === undefined) return { cut: 0 };
    const policy = purpose === 'setup' ? policies.setup : policies.run;
    this.#note(purpose, policy);
    return { cut: proxy.replacePolicy(policy) };
  }

  /** The revision of the newest reach that was taken; undefined while it is that of the specification. */
  get revision(): string | undefined {
    return this.#revision;
  }

  /** The turn was told of another reach than its specification has: what was made under one is not what the other would have made. */
  get wasReplaced(): boolean {
    return this.#wasReplaced;
  }

  /** Cuts every tunnel and refuses new ones. */
  async close(): Promise<void> {
    const { proxy } = this.#current ?? {};
    this.#current = undefined;
    await proxy?.close();
  }

  /** Serves one connection of a guest; while no purpose is open it is closed at once. */
  handle(stream: Duplex): void {
    stream.on('error', () => stream.destroy());
    if (this.#current === undefined) stream.destroy();
    else this.#current.proxy.handle(stream);
  }

  /** The audit of this attempt is full: nothing is let out any more. */
  get isFull(): boolean {
    return this.#lines > MAX_EGRESS_LINES;
  }

  summary(): EgressSummary {
    return this.#summary.summary();
  }

  #note(purpose: EgressPurpose, policy: EgressPolicy): void {
    const entries = describePolicy(policy);
    this.#options.note?.(`egress for the ${purpose}: ${entries.length === 0 ? 'nothing' : entries.join(', ')}`);
  }

  #makeProxy(purpose: EgressPurpose): EgressProxy {
    const { spec, leaseValid, audit, serverAddresses, chain } = this.#options;
    const policy = policyOf(this.#reach, purpose, serverAddresses);
    this.#note(purpose, policy);
    const before = this.#connections;
    return createEgressProxy({
      policy,
      ids: {
        vm: `${spec.turnId}.${spec.attempt}`,
        mission: spec.missionId,
        run: spec.runId,
        turn: spec.turnId,
        attempt: spec.attempt,
        node: spec.nodeId,
      },
      leaseValid,
      budgets: this.#budgets,
      ...(chain && { chain }),
      audit: (line) => {
        const entry = toLine({ ...line, connection: before + line.connection }, purpose);
        this.#connections = Math.max(this.#connections, entry.connection);
        const ofKind = this.#summary.add(line);
        if (line.event === 'refused' && ofKind > MAX_REFUSAL_LINES_PER_KIND) return;
        this.#lines += 1;
        if (this.#lines > MAX_EGRESS_LINES) {
          throw new CodedError('egress_audit_full', `attempt ${spec.turnId}.${spec.attempt} has ${MAX_EGRESS_LINES} audit lines`);
        }
        audit(entry);
      },
    });
  }
}

/** The effective policy of a purpose: the operator's ceiling over the hosts of backend and mission, which the server names together; set-up has its own. */
function policyOf(reach: Reach, purpose: EgressPurpose, serverAddresses: readonly string[]): EgressPolicy {
  return effectivePolicy({
    ceiling: reach.ceiling === null ? 'no_ceiling' : loadAllowList(reach.ceiling),
    backendHosts: [],
    missionHosts: loadAllowList(purpose === 'setup' ? reach.setupAllow : reach.allow),
    addressRules: reach.addressRules,
    budgets: reach.budgets,
    ownAddresses: [...listOwnAddresses(), ...serverAddresses],
  });
}

/** The same lists in one order of keys. */
function sorted({ allow, setupAllow, ceiling, addressRules, budgets = {} }: Reach): readonly unknown[] {
  const bound = (limit: { bytes?: number | undefined; connections?: number | undefined } = {}) => [limit.bytes, limit.connections];
  const { turn, eachHost, hosts = [] } = budgets;
  return [
    [allow, setupAllow, ceiling, addressRules.map(({ host, addresses }) => [host, addresses])],
    [bound(turn), bound(eachHost), hosts.map((entry) => [entry.host, ...bound(entry)])],
  ];
}

function toLine(line: EgressAuditLine, purpose: EgressPurpose): EgressLine {
  return {
    event: line.event,
    connection: line.connection,
    purpose,
    host: line.host ?? null,
    port: line.port ?? null,
    address: line.address ?? line.addresses?.[0] ?? null,
    verdict: line.verdict,
    reason: line.reason,
    rule: line.rule ?? null,
    bytesIn: line.bytesIn ?? null,
    bytesOut: line.bytesOut ?? null,
    lookupMs: line.lookupMs ?? null,
    connectMs: line.connectMs ?? null,
    durationMs: line.durationMs ?? null,
    ...(line.via === undefined ? {} : { via: line.via }),
  };
}

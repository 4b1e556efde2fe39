import { type AddressRuleInput, loadAddressRules } from './address-rule.ts';
import { ALLOW_ENTRIES_MAX, type AllowEntry, type AllowRule, parseAllowEntry } from './allow-entry.ts';
import { type EgressBudgetsInput, HOST_BUDGETS_MAX, loadBudgets } from './budgets.ts';
import { type ConfigProblem, EgressConfigError } from './config-error.ts';
import { intersectRules } from './intersect-rules.ts';
import { POLICY_PARTS, type PolicyPart, type PolicyPreset, PRESET_REACH, type PresetReach } from './policy-presets.ts';

/** Begins an entry that stands for a named rule of the policy: `rule:NAME`. */
export const RULE_WORD = 'rule:';
/** Begins an entry that stands for the host of the operator's own client configuration: `registry:npm`. */
export const REGISTRY_WORD = 'registry:';

/** Who asked for a rule that a learning run has without asking. */
export const LEARN_ORIGIN = 'learn';

/** Entries for each part of a phase. */
export type PartEntries = { readonly [Part in PolicyPart]?: readonly AllowEntry[] | undefined };

/** What an operator writes: plain data, read and shape-checked by whoever loads it. */
export interface PolicyDocument {
  readonly preset: PolicyPreset;
  /** What nothing may pass; an absent part has no bound but the preset's. */
  readonly ceiling?: PartEntries | undefined;
  /** What is open to a learning run without asking; an absent part has what the preset and the ceiling leave open. */
  readonly learn?: PartEntries | undefined;
  readonly addressRules?: readonly AddressRuleInput[] | undefined;
  /** How much a turn may send and fetch. */
  readonly budgets?: EgressBudgetsInput | undefined;
  /** Lists that missions and this document ask for by name, each for the parts it names (both where it names none). */
  readonly rules?: Readonly<Record<string, NamedRuleInput>> | undefined;
  /** What missions of a backend get without asking. */
  readonly backends?: Readonly<Record<string, PartEntries>> | undefined;
  /** What every mission gets without asking. */
  readonly missions?: PartEntries | undefined;
}

export interface NamedRuleInput {
  readonly parts?: readonly PolicyPart[] | undefined;
  readonly allow: readonly AllowEntry[];
}

/** A named rule in parsed form. */
export interface NamedRule {
  readonly parts: readonly PolicyPart[];
  readonly allow: readonly AllowRule[];
}

/** A rule and who asked for it: `mission`, `missions`, `backend NAME` or `rule:NAME`. */
export interface WantedRule {
  readonly rule: AllowRule;
  readonly origin: string;
}

/** An operator's policy in parsed form; plain data, never changed afterwards. */
export interface OperatorPolicy {
  readonly preset: PolicyPreset;
  readonly ceiling: Readonly<Record<PolicyPart, readonly AllowRule[] | 'no_ceiling'>>;
  /** The ceiling as the operator wrote it, before the bound of the preset. */
  readonly given: Readonly<Record<PolicyPart, readonly AllowRule[] | 'no_ceiling'>>;
  /** What is open to a learning run, never more than `given`; `not_allowed` where nothing bounds the part and the operator did not name any. */
  readonly learn: Readonly<Record<PolicyPart, readonly AllowRule[] | 'not_allowed'>>;
  readonly addressRules: readonly AddressRuleInput[];
  /** Undefined where the operator bounds nothing. */
  readonly budgets: EgressBudgetsInput | undefined;
  readonly rules: ReadonlyMap<string, NamedRule>;
  readonly backends: ReadonlyMap<string, Readonly<Record<PolicyPart, readonly WantedRule[]>>>;
  readonly missions: Readonly<Record<PolicyPart, readonly WantedRule[]>>;
}

/** One fault of a document: where it is (`backends.command.run[2]`), and what to write instead. */
export interface PolicyProblem {
  readonly path: string;
  readonly message: string;
}

export type OperatorPolicyResult =
  | { readonly ok: true; readonly policy: OperatorPolicy }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/** Hosts that registry words stand for, as entries; they are found by whoever loads the document. */
export type RegistryHosts = Readonly<Record<string, readonly AllowEntry[]>>;

/** The registry words of a document, each once, without `registry:`. */
export function registriesOf(document: PolicyDocument): string[] {
  const parts = [document.ceiling ?? {}, document.learn ?? {}, ...Object.values(document.backends ?? {}), document.missions ?? {}];
  const lists = [
    ...parts.flatMap((part) => POLICY_PARTS.map((name) => part[name] ?? [])),
    ...Object.values(document.rules ?? {}).map((rule) => rule.allow),
  ];
  const words = lists.flat().flatMap((entry) => (typeof entry === 'string' && entry.startsWith(REGISTRY_WORD) ? [entry] : []));
  return [...new Set(words.map((word) => word.slice(REGISTRY_WORD.length)))];
}

/** Parses a document; every fault is reported with its place, and one is enough to refuse it. */
export function parseOperatorPolicy(document: PolicyDocument, registries: RegistryHosts = {}): OperatorPolicyResult {
  const reader = new DocumentReader(registries);
  const rules = reader.namedRules(document.rules ?? {});
  const missions = reader.parts(document.missions ?? {}, 'missions', 'missions');
  const backends = new Map(
    Object.entries(document.backends ?? {}).map(([name, part]) => [name, reader.parts(part, `backends.${name}`, `backend ${name}`)]),
  );
  const given = document.ceiling ?? {};
  const ceilingOf = (part: PolicyPart) => {
    const entries = given[part];
    return entries === undefined ? ('no_ceiling' as const) : reader.list(entries, `ceiling.${part}`, 'ceiling').map(({ rule }) => rule);
  };
  const bounds = { setup: ceilingOf('setup'), run: ceilingOf('run') };
  const learned = (part: PolicyPart) => {
    const entries = document.learn?.[part];
    return entries === undefined ? undefined : reader.list(entries, `learn.${part}`, LEARN_ORIGIN).map(({ rule }) => rule);
  };
  const learns = { setup: learned('setup'), run: learned('run') };
  reader.checkAddressRules(document.addressRules ?? []);
  reader.checkBudgets(document.budgets ?? {});
  if (reader.problems.length > 0) return { ok: false, problems: reader.problems };
  const named = (part: PolicyPart): AllowRule[] => [
    ...[...rules.values()].flatMap((rule) => (rule.parts.includes(part) ? rule.allow : [])),
    ...[...backends.values(), missions].flatMap((lists) => lists[part].map(({ rule }) => rule)),
  ];
  const learn = (part: PolicyPart) => learnBoundOf(PRESET_REACH[document.preset][part], bounds[part], learns[part], ceiling(part));
  const ceiling = (part: PolicyPart) => boundOf(PRESET_REACH[document.preset][part], bounds[part], named(part));
  return {
    ok: true,
    policy: {
      preset: document.preset,
      ceiling: { setup: ceiling('setup'), run: ceiling('run') },
      given: bounds,
      learn: { setup: learn('setup'), run: learn('run') },
      addressRules: document.addressRules ?? [],
      budgets: document.budgets,
      rules,
      backends,
      missions,
    },
  };
}

/** The ceiling of a part: what the preset leaves open, and no more than the operator's own ceiling. */
function boundOf(
  reach: PresetReach,
  given: readonly AllowRule[] | 'no_ceiling',
  named: readonly AllowRule[],
): readonly AllowRule[] | 'no_ceiling' {
  if (reach === 'nothing') return [];
  if (reach === 'anything') return given;
  return given === 'no_ceiling' ? named : intersectRules(named, given);
}

/** What is open to a learning run of a part: what the operator names for it, else the ceiling; below the ceiling as written, in any case. */
function learnBoundOf(
  reach: PresetReach,
  given: readonly AllowRule[] | 'no_ceiling',
  learn: readonly AllowRule[] | undefined,
  ceiling: readonly AllowRule[] | 'no_ceiling',
): readonly AllowRule[] | 'not_allowed' {
  if (reach === 'nothing') return [];
  if (learn !== undefined) return given === 'no_ceiling' ? learn : intersectRules(learn, given);
  return ceiling === 'no_ceiling' ? 'not_allowed' : ceiling;
}

/** Reads the lists of one document, and gathers what is wrong with them. */
class DocumentReader {
  readonly problems: PolicyProblem[] = [];
  private readonly registries: RegistryHosts;
  private rules: ReadonlyMap<string, NamedRule> = new Map();
  private entries = 0;

  constructor(registries: RegistryHosts) {
    this.registries = registries;
  }

  namedRules(inputs: Readonly<Record<string, NamedRuleInput>>): ReadonlyMap<string, NamedRule> {
    // A rule of rules would need an order and could turn in a circle, so while these are read there are none.
    const read = Object.entries(inputs).map(([name, input]) => {
      const allow = this.list(input.allow, `rules.${name}.allow`, `${RULE_WORD}${name}`).map(({ rule }) => rule);
      return [name, { parts: input.parts ?? POLICY_PARTS, allow }] as const;
    });
    this.rules = new Map(read);
    return this.rules;
  }

  parts(input: PartEntries, path: string, origin: string): Record<PolicyPart, readonly WantedRule[]> {
    const of = (part: PolicyPart) => this.list(input[part] ?? [], `${path}.${part}`, origin);
    return { setup: of('setup'), run: of('run') };
  }

  list(entries: readonly AllowEntry[], path: string, origin: string): WantedRule[] {
    this.entries += entries.length;
    if (this.entries > ALLOW_ENTRIES_MAX) {
      this.problems.push({ path, message: `the policy has more than ${ALLOW_ENTRIES_MAX} entries` });
      return [];
    }
    return entries.flatMap((entry, at) => this.entry(entry, `${path}[${at}]`, origin));
  }

  checkAddressRules(rules: readonly AddressRuleInput[]): void {
    for (const [at, rule] of rules.entries()) {
      this.gather(`addressRules[${at}]`, () => loadAddressRules([rule]));
    }
  }

  checkBudgets(budgets: EgressBudgetsInput): void {
    this.gather('budgets.turn', () => loadBudgets({ turn: budgets.turn }));
    this.gather('budgets.eachHost', () => loadBudgets({ eachHost: budgets.eachHost }));
    const { hosts = [] } = budgets;
    if (hosts.length > HOST_BUDGETS_MAX) this.gather('budgets.hosts', () => loadBudgets({ hosts }));
    else for (const [at, host] of hosts.entries()) this.gather(`budgets.hosts[${at}]`, () => loadBudgets({ hosts: [host] }));
  }

  /** Runs a reader, and puts the place to what it finds wrong. */
  private gather(path: string, read: () => unknown): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof EgressConfigError)) throw error;
      this.problems.push(...error.problems.map((found) => problemAt(path, found)));
    }
  }

  private entry(entry: AllowEntry, path: string, origin: string): WantedRule[] {
    if (typeof entry === 'string' && entry.startsWith(RULE_WORD)) return this.namedRule(entry, path);
    const known = typeof entry === 'string' && entry.startsWith(REGISTRY_WORD) ? this.registry(entry, path) : [entry];
    return known.flatMap((one) => {
      const parsed = parseAllowEntry(one);
      if (parsed.ok) return [{ rule: parsed.rule, origin }];
      this.problems.push(problemAt(path, parsed.problem));
      return [];
    });
  }

  private namedRule(entry: string, path: string): WantedRule[] {
    const rule = this.rules.get(entry.slice(RULE_WORD.length));
    if (rule !== undefined) return rule.allow.map((allowed) => ({ rule: allowed, origin: entry }));
    const message = path.startsWith('rules.') ? 'a named rule holds hosts, not other rules' : `${JSON.stringify(entry)} is not in rules`;
    this.problems.push({ path, message });
    return [];
  }

  private registry(entry: string, path: string): readonly AllowEntry[] {
    const name = entry.slice(REGISTRY_WORD.length);
    const hosts = Object.hasOwn(this.registries, name) ? (this.registries[name] ?? []) : [];
    if (hosts.length === 0) this.problems.push({ path, message: `${JSON.stringify(entry)}: no host is known for it` });
    return hosts;
  }
}

function problemAt(path: string, { message }: ConfigProblem): PolicyProblem {
  return { path, message };
}

import { type ConfigProblem, EgressConfigError } from './config-error.ts';
import { normaliseHost } from './host-name.ts';
import { isUnder } from './intersect-rules.ts';

/** How much may pass: bytes of tunnels in both directions together, and tunnels opened, ended ones too. What is left out has no bound. */
export interface BudgetInput {
  readonly bytes?: number | undefined;
  readonly connections?: number | undefined;
}

/** What an operator writes to bound how much one turn sends and fetches. */
export interface EgressBudgetsInput {
  /** All hosts together. */
  readonly turn?: BudgetInput | undefined;
  /** Each name that no entry of `hosts` covers. */
  readonly eachHost?: BudgetInput | undefined;
  /** A name as in an allow-list, without a port; with a leading dot the domain and its subdomains, counted together. */
  readonly hosts?: readonly (BudgetInput & { readonly host: string })[] | undefined;
}

/** One budget as it holds for a host. `key` is what is counted together: the name, `.domain`, or empty for the turn as a whole. */
export interface Budget {
  readonly scope: 'host' | 'turn';
  readonly key: string;
  /** As it is told to people: `turn`, `each host`, or the entry. */
  readonly label: string;
  readonly bytes: number | undefined;
  readonly connections: number | undefined;
}

/** Budgets in parsed form; plain data, never changed afterwards. */
export interface EgressBudgets {
  readonly turn: BudgetInput | undefined;
  readonly eachHost: BudgetInput | undefined;
  readonly hosts: readonly { readonly host: string; readonly subdomains: boolean; readonly limits: BudgetInput }[];
}

/** Most entries of `hosts`. */
export const HOST_BUDGETS_MAX = 64;

function problem(entry: string, hint: string): ConfigProblem {
  return { entry, reason: 'bad_budget', message: `${JSON.stringify(entry)}: ${hint}` };
}

function problemsOf(entry: string, { bytes, connections }: BudgetInput): ConfigProblem[] {
  if (bytes === undefined && connections === undefined) return [problem(entry, 'a budget bounds bytes, connections or both')];
  const isBad = (limit: number | undefined) => limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1);
  return isBad(bytes) || isBad(connections) ? [problem(entry, 'a budget is a whole number from 1; leave a host out to refuse it')] : [];
}

/** Reads budgets; throws `EgressConfigError` listing every bad name and number. */
export function loadBudgets(input: EgressBudgetsInput = {}): EgressBudgets {
  const { turn, eachHost, hosts = [] } = input;
  const problems: ConfigProblem[] = [];
  if (turn !== undefined) problems.push(...problemsOf('turn', turn));
  if (eachHost !== undefined) problems.push(...problemsOf('eachHost', eachHost));
  if (hosts.length > HOST_BUDGETS_MAX) problems.push(problem('hosts', `at most ${HOST_BUDGETS_MAX} hosts have budgets of their own`));
  const parsed = hosts.flatMap((entry) => {
    const subdomains = entry.host.startsWith('.');
    const name = normaliseHost(subdomains ? entry.host.slice(1) : entry.host);
    problems.push(...problemsOf(entry.host, entry));
    if (name.ok) return [{ host: name.host, subdomains, limits: { bytes: entry.bytes, connections: entry.connections } }];
    problems.push(problem(entry.host, `not a host name (${name.reason})`));
    return [];
  });
  if (problems.length > 0) throw new EgressConfigError(problems);
  return { turn, eachHost, hosts: parsed };
}

/** Every budget that holds for a normalised name, nearest first, the turn's last. All of them hold at once. */
export function budgetsFor(budgets: EgressBudgets, host: string): Budget[] {
  const own = budgets.hosts
    .filter((entry) => entry.host === host || (entry.subdomains && isUnder(host, entry.host)))
    .sort((a, b) => b.host.length - a.host.length)
    .map((entry) => {
      const name = `${entry.subdomains ? '.' : ''}${entry.host}`;
      return makeBudget('host', name, name, entry.limits);
    });
  const each = own.length === 0 && budgets.eachHost !== undefined ? [makeBudget('host', host, 'each host', budgets.eachHost)] : [];
  return [...own, ...each, ...(budgets.turn === undefined ? [] : [makeBudget('turn', '', 'turn', budgets.turn)])];
}

function makeBudget(scope: Budget['scope'], key: string, label: string, { bytes, connections }: BudgetInput): Budget {
  return { scope, key, label, bytes, connections };
}

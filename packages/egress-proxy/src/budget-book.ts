import {
  type Budget,
  budgetsFor,
  type ChargedBudget,
  decideBytes,
  decideTunnel,
  type EgressBudgets,
  type SpentBudget,
} from '@firecrew/egress-policy';

interface Use {
  bytes: number;
  connections: number;
}

/** What one tunnel is charged by. */
export interface TunnelAccount {
  /** Charges one tunnel, or names the budget that lets no more open. */
  open(): SpentBudget | undefined;
  /** Takes that charge back: the tunnel was not opened. */
  giveBack(): void;
  /** Charges bytes that are about to pass, and says how many may. */
  take(bytes: number): ReturnType<typeof decideBytes>;
}

/**
 * What passed so far, by name and in all. It is kept whatever the budgets are, so that ones that come later hold for what passed before.
 * Several proxies of one guest may share it.
 */
export class BudgetBook {
  private readonly hosts = new Map<string, Use>();
  private readonly turn: Use = { bytes: 0, connections: 0 };
  /** Sums over domains, for the budgets of now alone. */
  private readonly domains = new Map<string, Use>();
  private budgets: EgressBudgets | undefined;
  /** How often other budgets came: what was found under earlier ones is found anew. */
  private adopted = 0;

  /** The account of a tunnel to a normalised name. `budgetsNow` is asked at each charge. */
  account(host: string, budgetsNow: () => EgressBudgets): TunnelAccount {
    let charged: readonly ChargedBudget[] = [];
    let uses: readonly Use[] = [];
    let madeAt = 0;
    const refresh = (): void => {
      const budgets = budgetsNow();
      this.adopt(budgets);
      if (madeAt === this.adopted) return;
      madeAt = this.adopted;
      charged = budgetsFor(budgets, host).map((budget) => ({ budget, used: this.useOf(budget, host) }));
      uses = [...new Set([this.hostUse(host), this.turn, ...charged.map(({ used }) => used as Use)])];
    };
    return {
      open: () => {
        refresh();
        const spent = decideTunnel(charged);
        if (spent === undefined) for (const use of uses) use.connections += 1;
        return spent;
      },
      giveBack: () => {
        refresh();
        for (const use of uses) use.connections -= 1;
      },
      take: (bytes) => {
        refresh();
        const decision = decideBytes(charged, bytes);
        for (const use of uses) use.bytes += decision.granted;
        return decision;
      },
    };
  }

  /** Sums over domains that other budgets asked for are not kept up to date, so they are made anew. */
  private adopt(budgets: EgressBudgets): void {
    if (budgets === this.budgets) return;
    this.domains.clear();
    this.budgets = budgets;
    this.adopted += 1;
  }

  private useOf({ scope, key }: Budget, host: string): Use {
    if (scope === 'turn') return this.turn;
    return key === host ? this.hostUse(host) : this.domainUse(key);
  }

  private hostUse(host: string): Use {
    const known = this.hosts.get(host);
    if (known !== undefined) return known;
    const fresh: Use = { bytes: 0, connections: 0 };
    this.hosts.set(host, fresh);
    return fresh;
  }

  private domainUse(key: string): Use {
    const known = this.domains.get(key);
    if (known !== undefined) return known;
    const sum: Use = { bytes: 0, connections: 0 };
    for (const [host, use] of this.hosts) {
      if (`.${host}`.endsWith(key)) {
        sum.bytes += use.bytes;
        sum.connections += use.connections;
      }
    }
    this.domains.set(key, sum);
    return sum;
  }
}

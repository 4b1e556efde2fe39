import type { BudgetLimit, CredentialHeader, ModelFeature, ModelFormat, PriceTable } from '@firecrew/model-route';

/** What the operator says of one route. Where it leads, and its credential, are the broker's. */
export interface RouteRules {
  readonly format: ModelFormat;
  /** How the broker shows the credential; absent: as the format has it. */
  readonly header?: CredentialHeader;
  /** Whether the route has a credential that its upstream could refuse. */
  readonly hasCredential: boolean;
  /** Features of bodies that may be used. */
  readonly features: readonly ModelFeature[];
  /** Exact names of the models that may be asked; null for every one. */
  readonly models: readonly string[] | null;
  /** Tokens of an answer where a request sets no limit; null sets none. */
  readonly outputCap: number | null;
  readonly budget: BudgetLimit;
  readonly prices: PriceTable | null;
}

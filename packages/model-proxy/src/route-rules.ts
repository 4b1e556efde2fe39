import type { BudgetLimit, CredentialHeader, ModelFeature, ModelFormat, PriceTable, Upstream } from '@firecrew/model-route';

/** What the operator says of one route. */
export interface RouteRules {
  readonly format: ModelFormat;
  readonly upstream: Upstream;
  /** Certificates, PEM, that alone are trusted for the upstream; absent: those of the system. */
  readonly ca?: string;
  /** How the credential is shown; absent: as the format has it. */
  readonly header?: CredentialHeader;
  /** Features of bodies that may be used. */
  readonly features: readonly ModelFeature[];
  /** Exact names of the models that may be asked; null for every one. */
  readonly models: readonly string[] | null;
  /** Tokens of an answer where a request sets no limit; null sets none. */
  readonly outputCap: number | null;
  readonly budget: BudgetLimit;
  readonly prices: PriceTable | null;
}

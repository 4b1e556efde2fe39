export { type AnswerDecision, decideAnswer } from './answer-headers.ts';
export { type BodyDecision, type BodyRules, checkBody } from './body/check-body.ts';
export { DATA_CHARACTERS_PER_TOKEN, estimateInput, INPUT_OVERHEAD_TOKENS, TEXT_BYTES_PER_TOKEN } from './body/estimate-input.ts';
export type { Finding } from './body/findings.ts';
export type { Ask } from './body/read-asks.ts';
export { BODY_DEPTH_MAX, BODY_VALUES_MAX, scanJson } from './body/scan-json.ts';
export { RouteConfigError, type RouteConfigFault } from './config-error.ts';
export { decideHead, HEADERS_MAX, type HeadDecision, type HeadRules, type RequestHead } from './decide-head.ts';
export type { CallKind } from './endpoints.ts';
export { featuresOf, type KnownFormat, MODEL_FEATURES, MODEL_FORMATS, type ModelFeature, type ModelFormat } from './formats.ts';
export { CredentialFilter, CredentialSearch, holdsCredential } from './leak/credential-filter.ts';
export { CREDENTIAL_MAX_CHARACTERS, CREDENTIAL_MIN_CHARACTERS, credentialForms, isCredential } from './leak/credential-forms.ts';
export {
  decideRefusal,
  LOGIN_REFUSED_MAX,
  LOGIN_REFUSED_PAUSE_MS,
  type RefusalDecision,
  type RefusedCredential,
} from './login/decide-refusal.ts';
export { LOGIN_ANSWER_MAX_BYTES, type LoginAnswer, readLoginAnswer } from './login/read-login.ts';
export { LOGIN_PAUSE_MIN_MS, LOGIN_REFRESH_AT, LOGIN_RETRY_MAX_MS, type LoginState, refreshDelay } from './login/refresh-delay.ts';
export { readTarget, TARGET_MAX_CHARACTERS, type Target, writeTarget } from './read-target.ts';
export { readUpstream, type Upstream } from './read-upstream.ts';
export {
  BODY_REFUSALS,
  type BodyRefusal,
  BUDGET_REFUSALS,
  type BudgetRefusal,
  HEAD_REFUSALS,
  type HeadRefusal,
  HOST_REFUSALS,
  type HostRefusal,
  type RouteRefusal,
  refusalStatus,
} from './reasons.ts';
export { refusalBody } from './refusal-body.ts';
export { type CredentialHeader, credentialHeader, type HeaderPair, headerPairs } from './request-headers.ts';
export { type Amount, add, type Budget, type BudgetLimit, NOTHING, openBudget, type Reservation, reserve, settle } from './usage/budget.ts';
export { EVENT_MAX_CHARACTERS } from './usage/event-reader.ts';
export { costOf, highestCost, type ModelPrice, PRICED_MODELS_MAX, type PriceTable, parsePriceTable } from './usage/prices.ts';
export { readUsage, type UsageSeen } from './usage/read-usage.ts';
export { addUsage, NO_USAGE, type TokenUsage, totalTokens } from './usage/token-usage.ts';
export { ANSWER_MAX_BYTES, UsageMeter } from './usage/usage-meter.ts';

export { type AddressRule, type AddressRuleInput, IPV4_PREFIX_MIN_BITS, IPV6_PREFIX_MIN_BITS, loadAddressRules } from './address-rule.ts';
export {
  ALLOW_ENTRIES_MAX,
  type AllowEntry,
  type AllowEntryResult,
  type AllowListResult,
  type AllowRule,
  DEFAULT_PORT,
  formatAllowRule,
  loadAllowList,
  parseAllowEntry,
  parseAllowList,
  type TunnelProtocol,
} from './allow-entry.ts';
export { type AskedBeyond, askedBeyond } from './asked-beyond.ts';
export {
  type Budget,
  type BudgetInput,
  budgetsFor,
  type EgressBudgets,
  type EgressBudgetsInput,
  HOST_BUDGETS_MAX,
  loadBudgets,
} from './budgets.ts';
export {
  CHAIN_MODES,
  type Chain,
  type ChainInput,
  type ChainMode,
  decideOperatorWay,
  decideWay,
  loadChain,
  NO_PROXY_MAX,
} from './chain.ts';
export { type ConfigProblem, EgressConfigError } from './config-error.ts';
export { type AddressDecision, type AddressPolicy, decideAddress } from './decide-address.ts';
export {
  type BudgetUse,
  type BytesSpent,
  type ChargedBudget,
  decideBytes,
  decideTunnel,
  formatBudget,
  type SpentBudget,
} from './decide-budget.ts';
export { decideHost, type HostDecision } from './decide-host.ts';
export {
  decideReach,
  type PartReach,
  type ReachDecision,
  type ReachRemedy,
  type ReachRequest,
  reachOf,
  type UnusableReason,
} from './decide-reach.ts';
export { decideServerName, type ServerNameDecision } from './decide-server-name.ts';
export {
  type AddressSettings,
  type BudgetSettings,
  createPolicy,
  describePolicy,
  type EffectivePolicyInput,
  type EgressPolicy,
  effectivePolicy,
  type PolicyInput,
} from './effective-policy.ts';
export { type HostNameResult, LABEL_MAX_BYTES, NAME_MAX_BYTES, normaliseHost } from './host-name.ts';
export { intersectRules, type RuleIndex } from './intersect-rules.ts';
export { type IpAddress, type IpRange, inRange, parseIp, parseIpRange } from './ip-address.ts';
export {
  LEARN_ORIGIN,
  type NamedRule,
  type NamedRuleInput,
  type OperatorPolicy,
  type OperatorPolicyResult,
  type PartEntries,
  type PolicyDocument,
  type PolicyProblem,
  parseOperatorPolicy,
  REGISTRY_WORD,
  type RegistryHosts,
  RULE_WORD,
  registriesOf,
  type WantedRule,
} from './operator-policy.ts';
export type { ClientHello } from './parse-client-hello.ts';
export type { ConnectTarget } from './parse-request-line.ts';
export { POLICY_PARTS, POLICY_PRESETS, type PolicyPart, type PolicyPreset, PRESET_REACH, type PresetReach } from './policy-presets.ts';
export {
  CLIENT_HELLO_BUFFER_MAX_BYTES,
  CLIENT_HELLO_MAX_BYTES,
  CLIENT_HELLO_RECORDS_MAX,
  type ClientHelloReader,
  type ClientHelloResult,
  createClientHelloReader,
} from './read-client-hello.ts';
export {
  CONNECT_HEAD_LIMITS,
  type ConnectHeadLimits,
  type ConnectHeadReader,
  type ConnectHeadResult,
  createConnectHeadReader,
  HEAD_MAX_BYTES,
  HEADER_COUNT_MAX,
  REQUEST_LINE_MAX,
} from './read-connect-head.ts';
export {
  createProxyAnswerReader,
  decideProxyStatus,
  PROXY_ANSWER_LINES_MAX,
  PROXY_ANSWER_MAX_BYTES,
  type ProxyAnswer,
  type ProxyAnswerReader,
} from './read-proxy-answer.ts';
export {
  ADDRESS_DENIALS,
  type AddressDenial,
  BUDGET_DENIALS,
  type BudgetDenial,
  CHAIN_FAULTS,
  type ChainFault,
  CONFIG_FAULTS,
  type ConfigFault,
  HEAD_FAULTS,
  HELLO_FAULTS,
  type HeadFault,
  type HelloFault,
  HOST_DENIALS,
  HOST_FAULTS,
  type HostDenial,
  type HostFault,
  SERVER_NAME_DENIALS,
  type ServerNameDenial,
} from './reasons.ts';

export { describeReach, type ReachAnswer, type ReachQuestion } from './describe-reach.ts';
export { policyJsonSchema } from './json-schema.ts';
export { type LearnedEntry, type LearnedPolicy, type LearnedRule, learnPolicy } from './learn-policy.ts';
export { type LoadedPolicy, type LoadOptions, loadPolicyFile, loadPolicyText, policyOfCeiling, readPolicyText } from './load-policy.ts';
export { MAX_POLICY_BYTES, parsePolicyText } from './parse-policy.ts';
export { MAX_LIST_ENTRIES, policyFileSchema } from './policy-schema.ts';

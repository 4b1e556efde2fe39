export { type LoadedPolicy, type LoadOptions, loadPolicyFile, policyOfCeiling, readPolicyText } from './load-policy.ts';
export { MAX_POLICY_BYTES, parsePolicyText } from './parse-policy.ts';
export { MAX_LIST_ENTRIES, policyFileSchema } from './policy-schema.ts';

export { BROKER_OWNER } from './account.ts';
export { type CredentialBroker, type CredentialBrokerOptions, createCredentialBroker } from './credential-broker.ts';
export { gatherWrites } from './gather-writes.ts';
export type { BrokerHandle } from './handles.ts';
export { LateValue } from './late-value.ts';
export {
  BROKER_BODY_MAX_BYTES,
  BROKER_LIMITS,
  type BrokerLimits,
  HANDLE_LOOK_EVERY_MS,
  MODEL_ANSWER_TIMEOUT_MS,
  MODEL_CALLS_MAX,
  MODEL_CREDENTIAL_WAIT_MS,
  MODEL_DIAL_TIMEOUT_MS,
  MODEL_HEAD_MAX_BYTES,
  MODEL_RENEWAL_WAIT_MS,
  MODEL_TUNNEL_TIMEOUT_MS,
  MODEL_UPLOAD_MAX_BYTES,
} from './limits.ts';
export { passBody } from './pass-body.ts';
export { PROBE_TIMEOUT_MS, probeUpstream, type UpstreamProbe } from './probe-upstream.ts';
export type { BrokerRoute } from './routes.ts';
export { type BrokerRefusal, type BrokerRefused, handleHeader, isHandle, newHandle, readLeaks, readRefused } from './wire.ts';

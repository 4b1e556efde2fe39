export type { RouteUsage } from './budget-keeper.ts';
export type { CallEnd, ModelCallLine } from './call-line.ts';
export {
  MODEL_BODIES_MAX_BYTES,
  MODEL_BODY_MAX_BYTES,
  MODEL_BODY_TIMEOUT_MS,
  MODEL_BROKER_WAIT_MS,
  MODEL_HEAD_TIMEOUT_MS,
  MODEL_IDLE_MS,
  MODEL_LINGER_MS,
  MODEL_PROXY_LIMITS,
  type ModelProxyLimits,
} from './limits.ts';
export { createModelProxy, type ModelProxy, type ModelProxyOptions } from './model-proxy.ts';
export type { RouteRules } from './route-rules.ts';

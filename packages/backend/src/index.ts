export { type BackendAvailability, type BackendNode, backendAvailability, whyLacking } from './backend-availability.ts';
export {
  type Backend,
  backendNameSchema,
  backendSchema,
  type HarnessChoice,
  harnessSchema,
  MAX_BACKEND_HOSTS,
  MAX_CONTRACT_VARIABLES,
  MAX_SCAFFOLDING,
} from './backend-schema.ts';
export { builtinBackends } from './builtin-backends.ts';
export { type EgressProxySettings, egressProxySettingsSchema } from './egress-proxy-settings.ts';
export {
  backendsSchema,
  contractVariables,
  findBackend,
  isRunnable,
  loadBackends,
  MAX_BACKENDS,
  nodeBackendOf,
  parseBackend,
} from './find-backend.ts';
export {
  type CredentialSource,
  DEFAULT_OUTPUT_TOKENS,
  type ModelRouteSettings,
  type ModelRoutes,
  modelRouteSettingsSchema,
  modelRoutesSchema,
} from './model-route-settings.ts';

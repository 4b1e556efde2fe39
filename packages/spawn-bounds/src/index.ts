export { buildGuestEnvironment, type GuestEnvironmentParts, MODEL_URL_VARIABLE, NO_PROXY_NAMES } from './build-guest-environment.ts';
export { type AcceptedCommand, checkCommand } from './check-command.ts';
export { type AcceptedCwd, type CwdBounds, checkCwd } from './check-cwd.ts';
export { type AcceptedEnvironment, checkEnvironment, type EnvironmentPolicy, RESERVED_PREFIX } from './check-environment.ts';
export { type AcceptedSpawn, checkPromptFiles, checkSpawn, type PromptBounds, type SpawnDeclaration } from './check-spawn.ts';
export {
  MAX_ARGUMENTS,
  MAX_ARGUMENTS_BYTES,
  MAX_ENVIRONMENT_BYTES,
  MAX_ENVIRONMENT_ENTRIES,
  MAX_PATH_BYTES,
  MAX_STRING_BYTES,
} from './limits.ts';
export { BOUNDS_REJECTED, SPAWN_RULES, type SpawnRefusal, type SpawnRule } from './rules.ts';
export { deniedWords, looksLikeSecretName, looksLikeSecretValue } from './secret-names.ts';

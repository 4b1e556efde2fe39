import { checkCwd, isWithin, joinParts, partsOfPath } from './check-cwd.ts';
import { checkEnvironment, type EnvironmentPolicy } from './check-environment.ts';
import { refuseSpawn, type SpawnRefusal } from './rules.ts';

/** The six declarations without which nothing is started. There are no defaults. */
export interface SpawnDeclaration {
  /** Absolute real path of the prompt file. */
  readonly prompt: unknown;
  /** Absolute real path of the schema file, in the same directory as the prompt. */
  readonly schema: unknown;
  readonly cwd: unknown;
  readonly environment: unknown;
  readonly workFolder: unknown;
  readonly dataFolder: unknown;
}

/** What the two text files of a start may be. */
export interface PromptBounds {
  readonly prompt: unknown;
  readonly schema: unknown;
  /** Folder that both must lie in; absolute real path. */
  readonly folder: unknown;
}

/** What was checked, and is to be used in place of the declaration. */
export interface AcceptedSpawn {
  readonly verdict: 'accepted';
  readonly prompt: string;
  readonly schema: string;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Checks that prompt and schema lie together in one directory, and that this lies in the given folder. */
export function checkPromptFiles(
  bounds: PromptBounds,
): { readonly verdict: 'accepted'; readonly prompt: string; readonly schema: string } | SpawnRefusal {
  const prompt = partsOfPath(bounds.prompt);
  if (prompt === undefined || prompt.length === 0) return refuseSpawn('prompt_missing', 'the prompt is missing or no absolute path');
  const schema = partsOfPath(bounds.schema);
  if (schema === undefined || schema.length === 0) return refuseSpawn('schema_missing', 'the schema is missing or no absolute path');
  if (joinParts(prompt.slice(0, -1)) !== joinParts(schema.slice(0, -1))) {
    return refuseSpawn('prompt_and_schema_apart', 'prompt and schema lie in different directories');
  }
  const folder = partsOfPath(bounds.folder);
  if (folder === undefined || !isWithin(prompt.slice(0, -1), folder)) {
    return refuseSpawn('prompt_outside_folder', 'prompt and schema lie outside the folder that is set for them');
  }
  return { verdict: 'accepted', prompt: joinParts(prompt), schema: joinParts(schema) };
}

/** Checks all six declarations before anything is asked to start; `promptFolder` bounds where prompt and schema may lie. */
export function checkSpawn(
  declared: SpawnDeclaration,
  policy: EnvironmentPolicy & { readonly promptFolder: string; readonly deniedParts?: readonly string[] },
): AcceptedSpawn | SpawnRefusal {
  const files = checkPromptFiles({ prompt: declared.prompt, schema: declared.schema, folder: policy.promptFolder });
  if (files.verdict === 'refused') return files;
  const cwd = checkCwd({ ...declared, ...(policy.deniedParts === undefined ? {} : { deniedParts: policy.deniedParts }) });
  if (cwd.verdict === 'refused') return cwd;
  if (declared.environment === undefined || declared.environment === null) {
    return refuseSpawn('environment_missing', 'the environment is not declared; declare an empty one where nothing is to be set');
  }
  const environment = checkEnvironment(declared.environment, policy);
  if (environment.verdict === 'refused') return environment;
  return { verdict: 'accepted', prompt: files.prompt, schema: files.schema, cwd: cwd.cwd, environment: environment.environment };
}

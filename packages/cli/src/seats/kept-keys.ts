import { accessSync, constants } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { EncryptedKeyStore, KeychainKeyStore, keychainProgram, SucceedingKeyStore } from '@firecrew/key-store';
import type { KeyStore } from '@firecrew/seat-keys';
import type { HomePaths } from '../home/home-paths.ts';
import type { Settings } from '../settings/settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a home keeps keys: sealed files, or the keychain, beside which keys that were filed before are still found. */
export function keptKeys(env: Environment, paths: HomePaths, { keyStore = 'files' }: Settings): KeyStore {
  const files = new EncryptedKeyStore(join(paths.client, 'seat-keys'));
  return keyStore === 'files' ? files : new SucceedingKeyStore(openKeychain(env), files);
}

/** The keychain of this system; its tool is looked for where the caller would find it. */
export function openKeychain(env: Environment, timeoutMs?: number): KeychainKeyStore {
  const found = { ...env, PATH: callerPath(env) };
  return new KeychainKeyStore({ platform: process.platform, env: found, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
}

/** What to tell where keys are to lie in a keychain whose tool is not there; undefined where all is well. */
export function missingTool(env: Environment, { keyStore }: Settings): string | undefined {
  if (keyStore !== 'keychain' || isOnPath(keychainProgram(process.platform), callerPath(env))) return undefined;
  return `keys are to lie in the keychain of this system, and its tool is not there: ${keychainAdvice(process.platform)}`;
}

/** What to do where the tool of a system's keychain is missing. */
export function keychainAdvice(platform: string): string {
  const files = 'keep keys in sealed files ("keyStore": "files" in config.json)';
  const program = keychainProgram(platform);
  if (program === undefined) return `Firecrew knows no keychain of ${platform}, so ${files}`;
  return `${program === 'secret-tool' ? 'apt-get install libsecret-tools' : 'put /usr/bin on PATH'}, or ${files}`;
}

function callerPath(env: Environment): string {
  return env.FIRECREW_CALLER_PATH ?? env.PATH ?? '';
}

function isOnPath(program: string | undefined, path: string): boolean {
  if (program === undefined) return false;
  return path.split(':').some((folder) => {
    try {
      if (isAbsolute(folder)) accessSync(join(folder, program), constants.X_OK);
      return isAbsolute(folder);
    } catch {
      return false;
    }
  });
}

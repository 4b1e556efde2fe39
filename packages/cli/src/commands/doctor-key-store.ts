import { describeStoreError, type StoreError } from '@firecrew/seat-keys';
import { openExistingHome } from '../home/open-home.ts';
import { keychainAdvice, openKeychain } from '../seats/kept-keys.ts';
import { readSettings } from '../settings/read-settings.ts';
import { type CommandContext, homePathOf } from './context.ts';
import type { Finding } from './doctor.ts';

/** How long a keychain may take to say that it holds nothing, in ms. */
const PROBE_TIMEOUT_MS = 20_000;

/** Whether the keychain that keys are to lie in answers; it is read, and nothing is written. No line where keys lie in files. */
export async function probeKeyStore(context: CommandContext): Promise<Finding[]> {
  const check = 'keychain';
  let homeId: string;
  try {
    const home = openExistingHome(homePathOf(context));
    if (home === undefined || readSettings(home.paths, context.env, {}).keyStore !== 'keychain') return [];
    homeId = home.homeId;
  } catch {
    // Homes and settings that cannot be read have lines of their own.
    return [];
  }
  const read = await openKeychain(context.env, PROBE_TIMEOUT_MS).read({ serverHost: homeId, workspace: 'doctor', seatId: 'probe' });
  if (read.status !== 'unreadable') return [{ check, state: 'ok', detail: 'answers', fix: null }];
  return [{ check, state: 'problem', detail: describeStoreError(read.error), fix: fixOf(read.error) }];
}

function fixOf({ fault }: StoreError): string | null {
  if (fault === 'helper_missing') return keychainAdvice(process.platform);
  return process.platform === 'darwin' && fault === 'locked' ? 'security unlock-keychain' : null;
}

import { CodedError } from '@firecrew/base';
import { decideRemoteUrl, type RemoteUrlDecision } from '@firecrew/delivery';
import type { GitConfigEntry } from './git-settings.ts';
import type { RemoteAccess } from './push-branch.ts';

/** A login for one host; it reaches git by the environment of one call alone. */
export interface RemoteCredential {
  readonly username: string;
  readonly password: string;
}

/** A remote of the server. */
export interface ServerRemote {
  /** https or ssh; a local path only with `allowLocalPath`. */
  readonly remoteUrl: string;
  readonly credential?: RemoteCredential;
  /** Further configuration, such as `http.proxy` and `http.sslCAInfo`. */
  readonly config?: readonly GitConfigEntry[];
  readonly env?: Readonly<Record<string, string>>;
  /** For a remote that the operator put on this machine. */
  readonly allowLocalPath?: boolean;
  readonly signal?: AbortSignal;
}

// Answers `get` alone, with what stands in the environment: no argument, no file and no URL ever holds the credential.
const HELPER = '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$FIRECREW_GIT_USERNAME" "$FIRECREW_GIT_PASSWORD"; }; f';

/** How the server speaks to a remote. Throws CodedError `remote_refused`, `remote_credential_malformed`. */
export function serverAccess(remote: ServerRemote): {
  readonly url: string;
  readonly access: RemoteAccess;
  readonly decision: RemoteUrlDecision;
} {
  const decision = decideRemoteUrl({ url: remote.remoteUrl, side: remote.allowLocalPath === true ? 'client' : 'server' });
  if (decision.verdict === 'refused') {
    throw new CodedError('remote_refused', `the remote is refused: ${decision.reason}`, { action: `The rule is: ${decision.rule}.` });
  }
  const { credential } = remote;
  const config: GitConfigEntry[] = [...(remote.config ?? [])];
  const env: Record<string, string> = { ...remote.env };
  if (credential !== undefined && decision.transport === 'https') {
    if (/[\n\r\0]/.test(`${credential.username}${credential.password}`)) {
      throw new CodedError('remote_credential_malformed', `the credential for ${decision.host} holds a line break`);
    }
    config.push([`credential.https://${decision.host}.helper`, HELPER]);
    env.FIRECREW_GIT_USERNAME = credential.username;
    env.FIRECREW_GIT_PASSWORD = credential.password;
  }
  const access: RemoteAccess = {
    config,
    env,
    protocols: decision.transport === 'local' ? ['file'] : [decision.transport],
    secrets: credential === undefined ? [] : [credential.password],
    ...(remote.signal === undefined ? {} : { signal: remote.signal }),
  };
  return { url: decision.url, access, decision };
}

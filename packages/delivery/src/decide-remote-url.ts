/** Why a remote is refused. */
export type RemoteRefusal =
  | 'empty'
  | 'control_character'
  | 'option_like'
  | 'transport_helper'
  | 'scheme_unsupported'
  | 'plain_http'
  | 'no_host'
  | 'local_path';
/** Why no credential of the deployment goes to an accepted remote. */
export type CredentialReason = 'other_host' | 'credential_missing' | 'ssh_form' | 'local_form' | 'no_forge';
export type RemoteTransport = 'https' | 'ssh' | 'local';

/** What is known about a remote and the place that will speak to it. */
export interface RemoteUrlInput {
  readonly url: string;
  /** Only the caller's own machine (`client`) may use a local path. */
  readonly side: 'server' | 'client';
  /** Host, with a port when it has one, of the forge whose credential the deployment holds. */
  readonly forgeHost?: string;
  /** Whether that credential is there and not blank. */
  readonly hasCredential?: boolean;
}

/** A remote that may be used, or the reason why not. */
export type RemoteUrlDecision =
  | {
      readonly verdict: 'allowed';
      /** Without user part (https) or password (ssh): safe to store, to log and to pass as an argument. */
      readonly url: string;
      readonly transport: RemoteTransport;
      /** Lower case, with the port when it is given; empty for a local path. */
      readonly host: string;
      readonly credentialStripped: boolean;
      readonly authenticated: boolean;
      readonly credentialReason?: CredentialReason;
      readonly isOurForge: boolean;
    }
  | { readonly verdict: 'refused'; readonly reason: RemoteRefusal; readonly rule: string };

const RULES: Readonly<Record<RemoteRefusal, string>> = {
  empty: 'a remote has a name',
  control_character: 'no control characters and no blanks at the ends',
  option_like: 'no part that git or ssh would read as an option',
  transport_helper: 'no transport helpers',
  scheme_unsupported: 'https and ssh only',
  plain_http: 'https, never http',
  no_host: 'the URL names a host',
  local_path: "local paths only on the caller's own machine",
};

function refuse(reason: RemoteRefusal): RemoteUrlDecision {
  return { verdict: 'refused', reason, rule: RULES[reason] };
}

function allow(
  input: RemoteUrlInput,
  found: { url: string; transport: RemoteTransport; host: string; credentialStripped: boolean },
): RemoteUrlDecision {
  const isOurForge = found.host !== '' && input.forgeHost !== undefined && found.host === input.forgeHost.toLowerCase();
  const missing = ((): CredentialReason | undefined => {
    if (found.transport === 'local') return 'local_form';
    if (found.transport === 'ssh') return 'ssh_form';
    if (input.forgeHost === undefined) return 'no_forge';
    if (!isOurForge) return 'other_host';
    return input.hasCredential === true ? undefined : 'credential_missing';
  })();
  const base = { verdict: 'allowed', ...found, isOurForge } as const;
  return missing === undefined ? { ...base, authenticated: true } : { ...base, authenticated: false, credentialReason: missing };
}

function decideScp(input: RemoteUrlInput, colon: number): RemoteUrlDecision {
  const authority = input.url.slice(0, colon);
  const host = authority.slice(authority.lastIndexOf('@') + 1).toLowerCase();
  const login = authority.slice(0, Math.max(0, authority.lastIndexOf('@')));
  const path = input.url.slice(colon + 1);
  if (host === '' || path === '') return refuse('no_host');
  if (authority.startsWith('-') || host.startsWith('-') || path.startsWith('-')) return refuse('option_like');
  if (login !== '' && !/^[A-Za-z0-9._-]+$/.test(login)) return refuse('no_host');
  if (!/^[a-z0-9._-]+$|^\[[0-9a-f:.]+\]$/.test(host)) return refuse('no_host');
  return allow(input, { url: input.url, transport: 'ssh', host, credentialStripped: false });
}

function decideParsed(input: RemoteUrlInput, parsed: URL, scheme: string): RemoteUrlDecision {
  const host = parsed.host.toLowerCase();
  if (host === '') return refuse('no_host');
  const path = `${parsed.pathname}${parsed.search}`;
  if (scheme === 'https') {
    const credentialStripped = parsed.username !== '' || parsed.password !== '';
    return allow(input, { url: `https://${host}${path}`, transport: 'https', host, credentialStripped });
  }
  const login = parsed.username;
  if (host.startsWith('-') || login.startsWith('-')) return refuse('option_like');
  if (login !== '' && !/^[A-Za-z0-9._-]+$/.test(login)) return refuse('no_host');
  const url = `ssh://${login === '' ? '' : `${login}@`}${host}${path}`;
  return allow(input, { url, transport: 'ssh', host, credentialStripped: parsed.password !== '' });
}

/** Whether `url` may be cloned, fetched from or pushed to, in which form, and whether our credential goes with it. */
export function decideRemoteUrl(input: RemoteUrlInput): RemoteUrlDecision {
  const { url } = input;
  if (url === '') return refuse('empty');
  if (/[\u0000-\u001f\u007f]/.test(url) || url.trim() !== url) return refuse('control_character');
  if (url.startsWith('-')) return refuse('option_like');
  if (/^[A-Za-z0-9][A-Za-z0-9+.-]*::/.test(url)) return refuse('transport_helper');
  const local = (path: string): RemoteUrlDecision =>
    input.side === 'client' ? allow(input, { url: path, transport: 'local', host: '', credentialStripped: false }) : refuse('local_path');
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//.exec(url)?.[1]?.toLowerCase();
  if (scheme === 'file') return local(url);
  if (scheme === 'http') return refuse('plain_http');
  if (scheme !== undefined && scheme !== 'https' && scheme !== 'ssh') return refuse('scheme_unsupported');
  if (scheme !== undefined) {
    // WHATWG reads a backslash in https as a slash and git does not: two readers of one text would see two hosts.
    if (url.includes('\\') || !URL.canParse(url)) return refuse('no_host');
    return decideParsed(input, new URL(url), scheme);
  }
  const bracket = /^(?:[^/:@]*@)?\[[^\]/]*\]/.exec(url)?.[0].length ?? 0;
  const colon = url.indexOf(':', bracket);
  const slash = url.indexOf('/');
  return colon > 0 && (slash === -1 || colon < slash) ? decideScp(input, colon) : local(url);
}

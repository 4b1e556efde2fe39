/** Names that never go through the proxy: the guest's own loopback, where the pumps listen. */
export const NO_PROXY_NAMES = '127.0.0.1,localhost,::1';
/** Where an agent finds its model route, when there is one. */
export const MODEL_URL_VARIABLE = 'FIRECREW_MODEL_URL';

/** What the environment of one exec is made of. Later parts win: image, proxy, caller, platform. */
export interface GuestEnvironmentParts {
  /** The image's own environment. */
  readonly image?: Readonly<Record<string, string>>;
  /** The caller's, as `checkEnvironment` returned it. */
  readonly caller?: Readonly<Record<string, string>>;
  /** The platform's: harness variables, the attempt's mark. */
  readonly platform?: Readonly<Record<string, string>>;
  readonly egressUp: boolean;
  /** Port of the guest's pump to the egress proxy, on 127.0.0.1; needed when egress is up. */
  readonly proxyPort?: number;
  /** Port of the guest's pump to the model route, on 127.0.0.1. */
  readonly modelPort?: number;
}

const PROXY_NAMES = ['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY', 'ALL_PROXY'];

/**
 * Builds the environment of an exec. With egress up each of HTTPS_PROXY, HTTP_PROXY and NO_PROXY is set in both spellings, unless the
 * caller set it in any letter case; then only the caller's spelling is there. With egress down none are set, the image's own included.
 */
export function buildGuestEnvironment(parts: GuestEnvironmentParts): Record<string, string> {
  const caller = parts.caller ?? {};
  const set = new Map<string, string>();
  for (const [name, value] of Object.entries(parts.image ?? {})) {
    if (!PROXY_NAMES.includes(name.toUpperCase())) set.set(name, value);
  }
  if (parts.egressUp && parts.proxyPort !== undefined) {
    const callerNames = new Set(Object.keys(caller).map((name) => name.toUpperCase()));
    const url = `http://127.0.0.1:${parts.proxyPort}`;
    const values: ReadonlyArray<readonly [string, string]> = [
      ['HTTPS_PROXY', url],
      ['HTTP_PROXY', url],
      ['NO_PROXY', NO_PROXY_NAMES],
    ];
    for (const [name, value] of values) {
      if (callerNames.has(name)) continue;
      set.set(name, value);
      set.set(name.toLowerCase(), value);
    }
  }
  for (const [name, value] of Object.entries(caller)) set.set(name, value);
  if (parts.modelPort !== undefined) set.set(MODEL_URL_VARIABLE, `http://127.0.0.1:${parts.modelPort}`);
  for (const [name, value] of Object.entries(parts.platform ?? {})) set.set(name, value);
  return Object.fromEntries(set);
}

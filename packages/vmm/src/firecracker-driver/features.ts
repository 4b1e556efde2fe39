/** The oldest release that the driver speaks to. */
export const MIN_FIRECRACKER = { major: 1, minor: 15 } as const;

/** What a Firecracker takes that an older one refuses: request bodies are closed, so one new field fails every boot of an old binary. */
export interface FirecrackerFeatures {
  /** `rate_limiter` of `PUT /serial`. */
  readonly serialRateLimiter: boolean;
  /** `discard` of a writable drive: what a guest deletes is given back to the host. */
  readonly discard: boolean;
}

/** What a version means for the driver. */
export type VersionVerdict =
  | { readonly supported: true; readonly features: FirecrackerFeatures }
  | { readonly supported: false; readonly reason: 'unreadable' | 'too_old' | 'unknown_major' };

/** Judges the version that a process says it is. A pre-release has what the release before it has. */
export function judgeVersion(version: string): VersionVerdict {
  const parts = /^v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(-[0-9A-Za-z.-]{1,64})?$/.exec(version);
  if (parts === null) return { supported: false, reason: 'unreadable' };
  const major = Number(parts[1]);
  const minor = Number(parts[2]) - (parts[4] === undefined ? 0 : 1);
  if (major < MIN_FIRECRACKER.major || (major === MIN_FIRECRACKER.major && minor < MIN_FIRECRACKER.minor)) {
    return { supported: false, reason: 'too_old' };
  }
  if (major > MIN_FIRECRACKER.major) return { supported: false, reason: 'unknown_major' };
  return { supported: true, features: { serialRateLimiter: minor >= 16, discard: minor >= 17 } };
}

import { createHash } from 'node:crypto';

const MARK_DIGITS = 16;

/**
 * Beginning of the ids of all Firecrackers of an attempt. The jailer clears the environment, so their command line is the one place
 * where their mark can be read.
 */
export function machineIdPrefix(attemptMarker: string): string {
  return `fc${createHash('sha256').update(attemptMarker).digest('hex').slice(0, MARK_DIGITS)}-`;
}

/** Id of one Firecracker: letters, digits and hyphens, at most 55 of them under the jailer. `nonce` is hexadecimal and never used twice. */
export function machineId(attemptMarker: string, nonce: string): string {
  return `${machineIdPrefix(attemptMarker)}${nonce}`;
}

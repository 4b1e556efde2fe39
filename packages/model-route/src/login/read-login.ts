import { isCredential } from '../leak/credential-forms.ts';

/** What the program of a login answered. */
export interface LoginAnswer {
  readonly credential: string;
  /** Wall clock in `ms`; null where the program does not say when it ends. */
  readonly expiresAtMs: number | null;
}

/** Most bytes of an answer: a credential with what stands around it. */
export const LOGIN_ANSWER_MAX_BYTES = 65_536;

/**
 * Reads the output of a login's program: one line with the credential, or a JSON object with `credential` and, as an ISO time or as seconds since
 * 1970, `expiresAt`. Other keys are left alone. Undefined for anything else.
 */
export function readLoginAnswer(text: string): LoginAnswer | undefined {
  const line = text.trim();
  // What begins as JSON is meant as JSON.
  if (!/^[{["]/.test(line)) return isCredential(line) ? { credential: line, expiresAtMs: null } : undefined;
  const { credential, expiresAt } = objectOf(line);
  if (typeof credential !== 'string' || !isCredential(credential)) return undefined;
  if (expiresAt === undefined || expiresAt === null) return { credential, expiresAtMs: null };
  const expiresAtMs = timeOf(expiresAt);
  return expiresAtMs === undefined ? undefined : { credential, expiresAtMs };
}

function objectOf(text: string): { readonly credential?: unknown; readonly expiresAt?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

function timeOf(value: unknown): number | undefined {
  const ms =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' && ISO_TIME.test(value) ? new Date(value).getTime() : Number.NaN;
  return Number.isFinite(ms) ? ms : undefined;
}

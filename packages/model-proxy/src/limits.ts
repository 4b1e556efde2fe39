import { MODEL_CALLS_MAX, MODEL_UPLOAD_MAX_BYTES } from '@firecrew/credential-broker';

/** Bounds of one model route, which serves one attempt. Every field has a default below. */
export interface ModelProxyLimits {
  /** From the first moment of a connection to the end of its first head. */
  readonly headMs: number;
  /** A connection without a request under way. */
  readonly idleMs: number;
  /** From the head of a request to the end of its body. */
  readonly bodyMs: number;
  /** Bytes of one body. */
  readonly bodyBytes: number;
  /** Bytes of one upload, which is passed on as it comes and never held. */
  readonly uploadBytes: number;
  /** Bytes of all bodies that are held at once. */
  readonly bodiesBytes: number;
  /** Requests under way, in any state. */
  readonly calls: number;
  /** Wait for a handle, and for a broker that knows it. */
  readonly brokerMs: number;
  /** How long a refused guest may take to read the answer. */
  readonly lingerMs: number;
}

export const MODEL_HEAD_TIMEOUT_MS = 10_000;
export const MODEL_IDLE_MS = 300_000;
export const MODEL_BODY_TIMEOUT_MS = 120_000;
/** The largest request of the known formats. */
export const MODEL_BODY_MAX_BYTES = 32 * 1024 * 1024;
export const MODEL_BODIES_MAX_BYTES = 96 * 1024 * 1024;
export const MODEL_BROKER_WAIT_MS = 10_000;
export const MODEL_LINGER_MS = 1_000;

export const MODEL_PROXY_LIMITS: ModelProxyLimits = {
  headMs: MODEL_HEAD_TIMEOUT_MS,
  idleMs: MODEL_IDLE_MS,
  bodyMs: MODEL_BODY_TIMEOUT_MS,
  bodyBytes: MODEL_BODY_MAX_BYTES,
  uploadBytes: MODEL_UPLOAD_MAX_BYTES,
  bodiesBytes: MODEL_BODIES_MAX_BYTES,
  calls: MODEL_CALLS_MAX,
  brokerMs: MODEL_BROKER_WAIT_MS,
  lingerMs: MODEL_LINGER_MS,
};

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
  /** Bytes of all bodies that are held at once. */
  readonly bodiesBytes: number;
  /** Requests under way, in any state. */
  readonly calls: number;
  /** Wait for the first credential. */
  readonly credentialMs: number;
  /** Opening a connection to the upstream, its handshake included. */
  readonly dialMs: number;
  /** An upstream that sends nothing. */
  readonly answerMs: number;
  /** How long a refused guest may take to read the answer. */
  readonly lingerMs: number;
}

export const MODEL_HEAD_TIMEOUT_MS = 10_000;
export const MODEL_IDLE_MS = 300_000;
export const MODEL_BODY_TIMEOUT_MS = 120_000;
/** The largest request of the known formats. */
export const MODEL_BODY_MAX_BYTES = 32 * 1024 * 1024;
export const MODEL_BODIES_MAX_BYTES = 96 * 1024 * 1024;
export const MODEL_CALLS_MAX = 64;
export const MODEL_CREDENTIAL_WAIT_MS = 10_000;
export const MODEL_DIAL_TIMEOUT_MS = 15_000;
/** Models think for minutes without a byte. */
export const MODEL_ANSWER_TIMEOUT_MS = 900_000;
export const MODEL_LINGER_MS = 1_000;
/** Bytes of the head of a request, and of an answer. */
export const MODEL_HEAD_MAX_BYTES = 32_768;

export const MODEL_PROXY_LIMITS: ModelProxyLimits = {
  headMs: MODEL_HEAD_TIMEOUT_MS,
  idleMs: MODEL_IDLE_MS,
  bodyMs: MODEL_BODY_TIMEOUT_MS,
  bodyBytes: MODEL_BODY_MAX_BYTES,
  bodiesBytes: MODEL_BODIES_MAX_BYTES,
  calls: MODEL_CALLS_MAX,
  credentialMs: MODEL_CREDENTIAL_WAIT_MS,
  dialMs: MODEL_DIAL_TIMEOUT_MS,
  answerMs: MODEL_ANSWER_TIMEOUT_MS,
  lingerMs: MODEL_LINGER_MS,
};

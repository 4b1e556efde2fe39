/** Bounds of a broker. Every field has a default below. */
export interface BrokerLimits {
  /** Requests under way of one handle. */
  readonly calls: number;
  /** Bytes of one body. */
  readonly bodyBytes: number;
  /** Bytes of one upload. */
  readonly uploadBytes: number;
  /** Wait for the first credential of a route. */
  readonly credentialMs: number;
  /** Wait for another credential where the present one was refused and may be renewed. */
  readonly renewalMs: number;
  /** Opening a connection to the upstream, its handshake included. */
  readonly dialMs: number;
  /** Of that, a tunnel through the operator's proxy. */
  readonly tunnelMs: number;
  /** An upstream that sends nothing. */
  readonly answerMs: number;
}

/** Requests under way in one turn. */
export const MODEL_CALLS_MAX = 64;
/** A body that was judged is written anew, and may be longer than it came: numbers lose their exponents. */
export const BROKER_BODY_MAX_BYTES = 128 * 1024 * 1024;
/** The largest file that a provider of the known formats takes. */
export const MODEL_UPLOAD_MAX_BYTES = 512 * 1024 * 1024;
export const MODEL_CREDENTIAL_WAIT_MS = 10_000;
/** A pause of 10 s before a login may run again, and as much for its run. */
export const MODEL_RENEWAL_WAIT_MS = 20_000;
export const MODEL_DIAL_TIMEOUT_MS = 15_000;
export const MODEL_TUNNEL_TIMEOUT_MS = 10_000;
/** Models think for minutes without a byte. */
export const MODEL_ANSWER_TIMEOUT_MS = 900_000;
/** Bytes of the head of a request, and of an answer. */
export const MODEL_HEAD_MAX_BYTES = 32_768;
/** Period of the look at handles whose lease may have run out, in `ms`. */
export const HANDLE_LOOK_EVERY_MS = 200;

export const BROKER_LIMITS: BrokerLimits = {
  calls: MODEL_CALLS_MAX,
  bodyBytes: BROKER_BODY_MAX_BYTES,
  uploadBytes: MODEL_UPLOAD_MAX_BYTES,
  credentialMs: MODEL_CREDENTIAL_WAIT_MS,
  renewalMs: MODEL_RENEWAL_WAIT_MS,
  dialMs: MODEL_DIAL_TIMEOUT_MS,
  tunnelMs: MODEL_TUNNEL_TIMEOUT_MS,
  answerMs: MODEL_ANSWER_TIMEOUT_MS,
};

/** What a coded error is made of. `message` says what happened to which id; `action` what to do next. */
export interface CodedErrorOptions {
  /** What to do next, one sentence. */
  readonly action?: string;
  /** The id the failure is about (mission, turn, node, path as shown to the user). */
  readonly id?: string;
  /** Kept on our side of every wire. */
  readonly cause?: unknown;
}

/** An expected failure with a stable machine-readable code. Codes are listed in `docs/errors.md`. */
export class CodedError extends Error {
  readonly code: string;
  readonly action: string | undefined;
  readonly id: string | undefined;

  constructor(code: string, message: string, options: CodedErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'CodedError';
    this.code = code;
    this.action = options.action;
    this.id = options.id;
  }
}

/** The code of any error that carries one (ours by shape, Node's `ENOENT` and the like), else undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

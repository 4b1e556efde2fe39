/** What an API error is made of. `status` is null where no answer came. */
export interface ApiErrorOptions {
  readonly code: string;
  readonly message: string;
  readonly action?: string | undefined;
  readonly id?: string | undefined;
  readonly status: number | null;
  readonly cause?: unknown;
}

/** A call that the server refused, could not answer, or never got. Codes of the client itself: `unreachable`, `bad_reply`, `disk_full`, `upload_unreadable`. */
export class FirecrewApiError extends Error {
  readonly code: string;
  readonly action: string | undefined;
  readonly id: string | undefined;
  /** HTTP status, or null where no answer came. */
  readonly status: number | null;

  constructor(options: ApiErrorOptions) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'FirecrewApiError';
    this.code = options.code;
    this.action = options.action;
    this.id = options.id;
    this.status = options.status;
  }
}

import { CodedError } from '@firecrew/base';
import { SECRET_BYTES } from './limits.ts';

/** Throws `bad_secret_length` or `bad_generation` for what a preamble cannot carry. */
export function checkIdentity(identity: { readonly secret: Uint8Array; readonly generation: number }): void {
  if (identity.secret.length !== SECRET_BYTES) {
    throw new CodedError('bad_secret_length', `A link secret has ${SECRET_BYTES} bytes, not ${identity.secret.length}.`);
  }
  const { generation } = identity;
  if (!Number.isInteger(generation) || generation < 0 || generation > 0xffff_ffff) {
    throw new CodedError('bad_generation', `Link generation ${generation} is not a u32.`);
  }
}

import { credentialForms } from './credential-forms.ts';

const STAR = 0x2a;

/** The spellings of some credentials, made once for many searches. */
export class CredentialSearch {
  readonly texts: readonly string[];
  /** Spellings by their first byte. */
  readonly byFirst: readonly (readonly Uint8Array[] | undefined)[];

  constructor(credentials: readonly string[]) {
    this.texts = credentials.flatMap(credentialForms);
    const byFirst: Uint8Array[][] = [];
    for (const form of this.texts) {
      const bytes = new TextEncoder().encode(form);
      const first = bytes[0];
      if (first === undefined) continue;
      byFirst[first] = [...(byFirst[first] ?? []), bytes];
    }
    this.byFirst = byFirst;
  }
}

/**
 * Takes a credential out of bytes that go to a guest, in every spelling of `credentialForms`: it is overwritten with asterisks, so that the length
 * stays. Chunks may cut it anywhere: only what could be its beginning is held back, and that is nothing at nearly every chunk.
 */
export class CredentialFilter {
  readonly #byFirst: CredentialSearch['byFirst'];
  #held = new Uint8Array(0);
  #found = 0;

  constructor(credentials: readonly string[] | CredentialSearch) {
    const search = credentials instanceof CredentialSearch ? credentials : new CredentialSearch(credentials);
    this.#byFirst = search.byFirst;
  }

  /** How often a credential was found. */
  get found(): number {
    return this.#found;
  }

  /** The bytes that may go on now. */
  push(chunk: Uint8Array): Uint8Array {
    const bytes = this.#held.length === 0 ? chunk : joined(this.#held, chunk);
    const safe = this.#cleanTo(bytes);
    this.#held = bytes.slice(safe);
    return safe === bytes.length ? bytes : bytes.subarray(0, safe);
  }

  /** What was held back: no credential, since nothing more comes. */
  end(): Uint8Array {
    const rest = this.#held;
    this.#held = new Uint8Array(0);
    return rest;
  }

  /** Overwrites what is found, and gives up to where nothing can begin that is not whole yet. */
  #cleanTo(bytes: Uint8Array): number {
    let held = bytes.length;
    for (let at = 0; at < bytes.length; at += 1) {
      const forms = this.#byFirst[bytes[at] ?? 0];
      if (forms === undefined) continue;
      for (const form of forms) {
        const same = commonLength(bytes, at, form);
        if (same === form.length) {
          bytes.fill(STAR, at, at + form.length);
          this.#found += 1;
          break;
        }
        if (at + same === bytes.length) held = Math.min(held, at);
      }
    }
    return held;
  }
}

/** True where a text holds a credential in any spelling. */
export function holdsCredential(text: string, credentials: readonly string[] | CredentialSearch): boolean {
  const { texts } = credentials instanceof CredentialSearch ? credentials : new CredentialSearch(credentials);
  return texts.some((form) => text.includes(form));
}

function commonLength(bytes: Uint8Array, at: number, form: Uint8Array): number {
  let index = 0;
  while (index < form.length && at + index < bytes.length && bytes[at + index] === form[index]) index += 1;
  return index;
}

function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}

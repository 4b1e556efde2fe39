import { CaptureError } from '../capture-error.ts';
import type { RawHeader } from './parse-header.ts';
import { type PaxOverrides, parsePax } from './parse-pax.ts';

/** Largest size that the octal size field of a header can state: 8 GiB - 1. */
export const MAX_OCTAL_SIZE = 0o77777777777;

/** Type flags whose content describes another entry. */
export const EXTENSION_FLAGS = 'xgLK';

/** Collects the extension headers in front of one entry, in one dialect only, and applies them to it. */
export class Extensions {
  #pax: PaxOverrides | undefined;
  #longName: Uint8Array | undefined;
  #longLink: Uint8Array | undefined;

  /** Takes the content of an extension header of type `x`, `g`, `L` or `K`. @throws CaptureError. */
  take(typeFlag: string, content: Uint8Array): void {
    if (typeFlag === 'g') {
      this.refuseDangling();
      parsePax(content, 'global');
    } else if (typeFlag === 'x') {
      if (this.#pax !== undefined) throw dangling();
      this.#pax = parsePax(content, 'entry');
    } else if (typeFlag === 'L') {
      if (this.#longName !== undefined) throw dangling();
      this.#longName = longText(content);
    } else {
      if (this.#longLink !== undefined) throw dangling();
      this.#longLink = longText(content);
    }
    if (this.#pax !== undefined && (this.#longName ?? this.#longLink) !== undefined) {
      throw new CaptureError('mixed_dialects', 'an entry has extension headers of two dialects');
    }
  }

  /** The header with the extensions applied, which are then spent. @throws CaptureError `size_disagreement`. */
  apply(header: RawHeader): RawHeader {
    const pax = this.#pax ?? {};
    const size = pax.size ?? header.size;
    // A reader that ignores the extension would lose step, so two sizes that can both be stated must be the same.
    if (size !== header.size && size <= MAX_OCTAL_SIZE) throw new CaptureError('size_disagreement', 'an entry has two sizes');
    const name = pax.path ?? this.#longName ?? header.name;
    const linkName = pax.linkPath ?? this.#longLink ?? header.linkName;
    this.#pax = undefined;
    this.#longName = undefined;
    this.#longLink = undefined;
    return { ...header, size, name, linkName };
  }

  /** @throws CaptureError `dangling_extension` when an extension header waits for an entry. */
  refuseDangling(): void {
    if (this.#pax !== undefined || this.#longName !== undefined || this.#longLink !== undefined) throw dangling();
  }
}

/** GNU long names end in one NUL. */
function longText(content: Uint8Array): Uint8Array {
  return content.at(-1) === 0 ? content.slice(0, -1) : content;
}

function dangling(): CaptureError {
  return new CaptureError('dangling_extension', 'an extension header belongs to no entry');
}

import { parsePaxRecords } from './pax-records.ts';
import { malformedArchive, refusedEntry } from './refusals.ts';
import { type ByteText, byteText, type TarEntry, type TarEntryType } from './tar-entry.ts';
import type { TarHeader } from './tar-header.ts';
import { parsePaxCount, parsePaxTime } from './tar-number.ts';

/** Type flags whose content describes another entry. */
export const EXTENSION_FLAGS = 'xgLK';

/** Largest size that the octal size field of a header can state: 8 GiB - 1. */
export const MAX_OCTAL_SIZE = 0o77777777777;
/** Largest time that squashfs can hold. */
export const MAX_MTIME = 0xffff_ffff;
/** Largest owner that the kernel has. */
const MAX_OWNER = 0xffff_fffe;
const XATTR_PREFIX = 'SCHILY.xattr.';

const TYPES: Readonly<Record<string, TarEntryType>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'symbolic-link',
  '3': 'character-device',
  '4': 'block-device',
  '5': 'directory',
  '6': 'fifo',
};

/** Collects the extension headers in front of one entry, of one dialect only, and applies them to it. */
export class TarExtensions {
  #pax: ReadonlyMap<ByteText, Buffer> | undefined;
  #longName: ByteText | undefined;
  #longLink: ByteText | undefined;

  /** Takes the content of a header of type `x`, `g`, `L` or `K`. Throws `layer_malformed`. */
  take(typeFlag: string, content: Uint8Array): void {
    if (typeFlag === 'g') checkGlobal(parsePaxRecords(content));
    else if (typeFlag === 'x') {
      if (this.#pax !== undefined) throw malformedArchive('an extension header belongs to no entry');
      this.#pax = parsePaxRecords(content);
    } else {
      const before = typeFlag === 'L' ? this.#longName : this.#longLink;
      if (before !== undefined) throw malformedArchive('an extension header belongs to no entry');
      if (typeFlag === 'L') this.#longName = longText(content);
      else this.#longLink = longText(content);
    }
    if (this.#pax !== undefined && (this.#longName ?? this.#longLink) !== undefined)
      throw malformedArchive('an entry has extension headers of two dialects');
  }

  /** The entry that a header and the extensions in front of it describe; they are spent then. Throws `layer_malformed`, `entry_refused`. */
  apply(header: TarHeader): TarEntry {
    const pax = this.#pax ?? new Map<ByteText, Buffer>();
    const text = (key: string): string | undefined => {
      const value = pax.get(key);
      // An empty value takes a record back.
      return value === undefined || value.length === 0 ? undefined : byteText(value);
    };
    const count = (key: string, other: number): number => {
      const value = text(key);
      return value === undefined ? other : parsePaxCount(value);
    };
    if ([...pax.keys()].some((key) => key.startsWith('GNU.sparse.'))) throw refusedEntry('a sparse file', header.name);
    const time = text('mtime');
    const entry = typed({
      ...header,
      size: agreedSize(header.size, count('size', header.size)),
      name: text('path') ?? this.#longName ?? header.name,
      linkName: text('linkpath') ?? this.#longLink ?? header.linkName,
      uid: count('uid', header.uid),
      gid: count('gid', header.gid),
      mtime: time === undefined ? header.mtime : parsePaxTime(time),
    });
    this.#pax = undefined;
    this.#longName = undefined;
    this.#longLink = undefined;
    return { ...entry, xattrs: keptXattrs(pax) };
  }

  /** Throws `layer_malformed` when an extension header waits for an entry. */
  refuseDangling(): void {
    if ((this.#pax ?? this.#longName ?? this.#longLink) !== undefined) throw malformedArchive('an extension header belongs to no entry');
  }
}

function typed(header: TarHeader): Omit<TarEntry, 'xattrs'> {
  const flagged = TYPES[header.typeFlag];
  if (flagged === undefined) throw refusedEntry(`an entry of type ${JSON.stringify(header.typeFlag)}`, header.name);
  // The oldest form has no type for folders but a slash.
  const type = flagged === 'file' && header.typeFlag !== '7' && header.name.endsWith('/') ? 'directory' : flagged;
  if (type !== 'file' && header.size !== 0) throw refusedEntry(`a ${type} with content`, header.name);
  if (header.uid < 0 || header.gid < 0 || header.uid > MAX_OWNER || header.gid > MAX_OWNER)
    throw refusedEntry('an owner that no system has', header.name);
  if (header.size < 0) throw refusedEntry('a negative size', header.name);
  const isLink = type === 'hard-link' || type === 'symbolic-link';
  if (isLink && header.linkName === '') throw refusedEntry(`a ${type} to nothing`, header.name);
  return {
    type,
    path: header.name,
    size: header.size,
    linkName: isLink ? header.linkName : '',
    mode: header.mode & 0o7777,
    uid: header.uid,
    gid: header.gid,
    mtime: Math.min(Math.max(header.mtime, 0), MAX_MTIME),
    deviceMajor: header.deviceMajor,
    deviceMinor: header.deviceMinor,
  };
}

/** A reader that ignores extensions would lose step, so two sizes that can both be stated must be the same. */
function agreedSize(inHeader: number, inExtension: number): number {
  if (inExtension !== inHeader && inExtension <= MAX_OCTAL_SIZE) throw malformedArchive('an entry has two sizes');
  return inExtension;
}

/**
 * Attributes that mean the same in every guest. Labels of a host's security module do not, and those of overlayfs would be obeyed by the
 * overlay that the guest lays over its image.
 */
function keptXattrs(pax: ReadonlyMap<ByteText, Buffer>): ReadonlyMap<ByteText, Buffer> {
  const kept = new Map<ByteText, Buffer>();
  for (const [key, value] of pax) {
    const name = key.startsWith(XATTR_PREFIX) ? key.slice(XATTR_PREFIX.length) : '';
    const isUsers = name.startsWith('user.') && !name.startsWith('user.overlay.');
    if (isUsers || name === 'security.capability') kept.set(name, value);
  }
  return kept;
}

function checkGlobal(records: ReadonlyMap<ByteText, Buffer>): void {
  for (const key of records.keys()) if (key !== 'comment' && /^[a-z]+$/.test(key)) throw malformedArchive(`a global header sets ${key}`);
}

/** GNU long names end in one NUL. */
function longText(content: Uint8Array): ByteText {
  return byteText(content.at(-1) === 0 ? content.subarray(0, -1) : content);
}

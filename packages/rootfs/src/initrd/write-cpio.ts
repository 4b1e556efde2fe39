import { CodedError } from '@firecrew/base';

/** One entry of an initrd. Its type is in `mode` (`S_IFMT` bits), as in `stat`; owner is root and the time is 0. */
export interface CpioEntry {
  /** Relative path without `.` and `..`; folders come before what is in them. */
  readonly path: string;
  readonly mode: number;
  readonly content?: Uint8Array;
}

const MAGIC = '070701';
const TRAILER = 'TRAILER!!!';
/** A field of a newc header holds eight hexadecimal digits. */
const MAX_FIELD = 0xffff_ffff;

/**
 * Writes a cpio archive in the `newc` form that the kernel unpacks as an initrd. The same entries give the same bytes. The kernel
 * reads archives one behind another, each from a multiple of 4 bytes. Throws `bad_cpio_entry`.
 */
export function writeCpio(entries: readonly CpioEntry[]): Buffer {
  const parts = entries.flatMap((entry, index) => record(checked(entry), index + 1));
  return Buffer.concat([...parts, ...record({ path: TRAILER, mode: 0 }, 0)]);
}

function record({ path, mode, content = new Uint8Array(0) }: CpioEntry, inode: number): Buffer[] {
  const name = Buffer.from(`${path}\0`);
  // inode, mode, uid, gid, links, mtime, size, device (2), its own device (2), length of the name, checksum
  const fields = [inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = Buffer.from(MAGIC + fields.map((field) => field.toString(16).padStart(8, '0')).join(''));
  return [header, name, padding(header.length + name.length), Buffer.from(content), padding(content.length)];
}

function padding(length: number): Buffer {
  return Buffer.alloc((4 - (length % 4)) % 4);
}

function checked(entry: CpioEntry): CpioEntry {
  const parts = entry.path.split('/');
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..') && !entry.path.includes('\0');
  if (!isPlain || entry.path === TRAILER || (entry.content?.length ?? 0) > MAX_FIELD) {
    throw new CodedError('bad_cpio_entry', `${JSON.stringify(entry.path)} cannot be an entry of an initrd.`, { id: entry.path });
  }
  return entry;
}

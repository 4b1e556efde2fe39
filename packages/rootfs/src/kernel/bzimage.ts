import { CodedError } from '@firecrew/base';

/** How the kernel proper is packed inside a bzImage. */
export type PayloadFormat = 'gzip' | 'xz' | 'lzma' | 'zstd' | 'lz4' | 'none';

/** What the setup header of a bzImage says; see the boot protocol of Linux on x86. */
export interface BzImage {
  /** As `uname -r` says it. */
  readonly version: string;
  /** Where the compressed kernel lies, without the size behind it. */
  readonly payloadOffset: number;
  readonly payloadBytes: number;
  readonly format: PayloadFormat;
  /** Bytes of the unpacked kernel, as the image states them. */
  readonly unpackedBytes: number;
}

const SECTOR = 512;
/** Protocol 2.08, Linux 2.6.26: the first that says where the payload is. */
const MIN_PROTOCOL = 0x0208;
const HEADER_END = 0x250;
const MAX_VERSION_CHARS = 256;
/** Unpacked kernels are some 50 MB. */
export const MAX_KERNEL_BYTES = 512 * 1024 * 1024;

const MAGICS: readonly (readonly [string, PayloadFormat])[] = [
  ['1f8b', 'gzip'],
  ['fd377a585a00', 'xz'],
  ['5d0000', 'lzma'],
  ['28b52ffd', 'zstd'],
  ['02214c18', 'lz4'],
  ['7f454c46', 'none'],
];

/** Reads the setup header. Throws `kernel_malformed`, `kernel_unsupported`. */
export function parseBzImage(bytes: Buffer): BzImage {
  if (bytes.length < HEADER_END || bytes.readUInt16LE(0x1fe) !== 0xaa55 || bytes.toString('latin1', 0x202, 0x206) !== 'HdrS')
    throw malformedKernel('it is no bzImage for x86-64');
  if (bytes.readUInt16LE(0x206) < MIN_PROTOCOL) throw malformedKernel('it is older than every kernel that this can boot');
  // 0 means 4, for the oldest images.
  const setupSectors = bytes[0x1f1] === 0 ? 4 : (bytes[0x1f1] ?? 4);
  const payloadOffset = (setupSectors + 1) * SECTOR + bytes.readUInt32LE(0x248);
  const payloadLength = bytes.readUInt32LE(0x24c);
  if (payloadLength < 8 || payloadOffset + payloadLength > bytes.length) throw malformedKernel('its payload lies behind its end');
  const unpackedBytes = bytes.readUInt32LE(payloadOffset + payloadLength - 4);
  if (unpackedBytes > MAX_KERNEL_BYTES) throw malformedKernel(`it states ${unpackedBytes} bytes; ${MAX_KERNEL_BYTES} are allowed`);
  const head = bytes.toString('hex', payloadOffset, payloadOffset + 6);
  const format = MAGICS.find(([magic]) => head.startsWith(magic))?.[1];
  if (format === undefined)
    throw new CodedError('kernel_unsupported', `the kernel is compressed in a way that is not known here (it begins ${head})`, {
      action: 'Use a kernel with gzip, xz, lzma, zstd or lz4.',
    });
  return { version: versionOf(bytes), payloadOffset, payloadBytes: payloadLength - 4, format, unpackedBytes };
}

/** The file is no kernel that can be used. */
export function malformedKernel(what: string): CodedError {
  return new CodedError('kernel_malformed', `the kernel cannot be used: ${what}`, {
    action: 'Give the package of a kernel, or its vmlinuz.',
  });
}

function versionOf(bytes: Buffer): string {
  const pointer = bytes.readUInt16LE(0x20e);
  const text = pointer === 0 ? '' : bytes.toString('latin1', pointer + SECTOR, pointer + SECTOR + MAX_VERSION_CHARS);
  const version = /^[\x21-\x7e]+/.exec(text)?.[0];
  if (version === undefined || !/^[0-9][A-Za-z0-9._+~-]*$/.test(version)) throw malformedKernel('it does not say its version');
  return version;
}

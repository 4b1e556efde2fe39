import type { Readable } from 'node:stream';
import { constants, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { messageOf } from '@firecrew/base';
import { runTool, TOOLS } from '../tools/run-tool.ts';
import { malformedKernel, type PayloadFormat } from './bzimage.ts';
import { unpackLz4 } from './unpack-lz4.ts';

/** Kernels are packed with the largest windows: 128 MiB. */
const MAX_WINDOW_LOG = 27;

/** Unpacks bytes of a known size. Throws `kernel_malformed`, `tool_missing`, `tool_failed`. */
export async function decompressExact(bytes: Buffer, format: PayloadFormat, unpackedBytes: number): Promise<Buffer> {
  const unpacked = await decompress(bytes, format, unpackedBytes);
  if (unpacked.length !== unpackedBytes) throw malformedKernel(`it unpacks to ${unpacked.length} bytes, and states ${unpackedBytes}`);
  return unpacked;
}

/** Unpacks bytes to at most `maxBytes`. Throws `kernel_malformed`, `tool_missing`, `tool_failed`. */
export async function decompress(bytes: Buffer, format: PayloadFormat, maxBytes: number): Promise<Buffer> {
  switch (format) {
    case 'none':
      return bytes;
    case 'lz4':
      return unpackLz4(bytes, maxBytes);
    case 'gzip':
      return inNode(() => gunzipSync(bytes, { maxOutputLength: maxBytes }));
    case 'zstd':
      return inNode(() =>
        zstdDecompressSync(bytes, { maxOutputLength: maxBytes, params: { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG } }),
      );
    case 'xz':
    case 'lzma':
      return await byXz(bytes, format, maxBytes);
  }
}

function inNode(unpack: () => Buffer): Buffer {
  try {
    return unpack();
  } catch (error) {
    throw malformedKernel(`what is compressed in it is damaged (${messageOf(error)})`);
  }
}

/** Node has no LZMA. */
async function byXz(bytes: Buffer, format: 'xz' | 'lzma', maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  await runTool({
    tool: TOOLS.xz,
    args: ['--decompress', '--stdout', `--format=${format}`],
    input: piecesOf(bytes),
    output: async (stream: Readable) => {
      for await (const part of stream as AsyncIterable<Buffer>) {
        length += part.length;
        if (length > maxBytes) throw malformedKernel(`it unpacks to more than ${maxBytes} bytes`);
        parts.push(part);
      }
    },
  });
  return Buffer.concat(parts);
}

async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  const step = 1024 * 1024;
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

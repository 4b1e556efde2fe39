import { CaptureError, TarReader, type TreeLimits } from '@firecrew/artifact-capture';
import { refusal } from './read-archive.ts';
import type { ByteStream } from './tree-sink.ts';

/** What a relayed archive holds. */
export interface RelayedArchive {
  /** Files, links and empty folders. */
  readonly entries: number;
  readonly contentBytes: number;
}

/**
 * Reads a tar stream to its end mark by the rules of `unpackTree` and hands on each chunk once it is accepted; nothing is hashed or stored.
 * For a reader that stores the entries itself and would not drop any, so an entry that is to be dropped refuses the archive too.
 * @throws CodedError `archive_refused`, `archive_cut`; what `write` throws, when it is a `CodedError`.
 */
export async function relayArchive(
  stream: ByteStream,
  write: (chunk: Uint8Array) => Promise<void> | void,
  limits: Partial<TreeLimits> = {},
): Promise<RelayedArchive> {
  const reader = new TarReader(limits);
  let entries = 0;
  let contentBytes = 0;
  try {
    for await (const chunk of stream) {
      for (const event of reader.push(chunk)) {
        if (event.kind === 'skipped') throw new CaptureError('unsupported_type', 'an entry is of a kind that is dropped', event.path);
        if (event.kind !== 'entry') continue;
        // Folders count when they turn out to be empty.
        if (event.entry.type !== 'directory') entries += 1;
        if (event.entry.type === 'file' || event.entry.type === 'copy') contentBytes += event.entry.size;
      }
      await write(chunk);
    }
    reader.finish();
  } catch (error) {
    throw refusal(error);
  }
  return { entries: entries + reader.emptyDirectories().length, contentBytes };
}

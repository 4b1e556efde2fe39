import { tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import type { BlobEntry } from '@firecrew/workspace';

/** The entries that are kept, with their content. */
export async function* pick(entries: AsyncIterable<BlobEntry>, keep: (entry: BlobEntry) => boolean): AsyncGenerator<BlobEntry> {
  for await (const entry of entries) if (keep(entry)) yield entry;
}

/** One tar of several sources. */
export async function* archiveOf(sources: readonly AsyncIterable<BlobEntry>[]): AsyncGenerator<Uint8Array> {
  for (const source of sources) {
    for await (const { path, kind, size, content } of source) {
      if (kind === 'link') yield writeTarHeader({ path, kind, size: 0, target: await wholeOf(content) });
      else {
        yield writeTarHeader({ path, kind, size });
        yield* content;
        yield tarPadding(size);
      }
    }
  }
  yield tarEnd();
}

async function wholeOf(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of content) parts.push(part);
  return Buffer.concat(parts);
}

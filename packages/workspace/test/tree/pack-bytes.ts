import { buffer } from 'node:stream/consumers';
import { type PackOptions, type PackReport, packTree } from '../../src/index.ts';

/** Packs a tree into memory. */
export async function packBytes(root: string, options: PackOptions = {}): Promise<{ bytes: Buffer; report: PackReport }> {
  const { stream, done } = packTree(root, options);
  const bytes = await buffer(stream);
  return { bytes, report: await done };
}

import type { LayerKey } from './layer-key.ts';

/** A layer as the collector sees it. */
export interface KeptLayer {
  readonly key: LayerKey;
  /** Bytes that it takes up on the disk. */
  readonly bytes: number;
  /** When a VM last began to use it, in milliseconds since 1970. */
  readonly lastUsedMs: number;
  /** Whether an attempt that lives now uses it. */
  readonly inUse: boolean;
}

/** How much may stay, and for how long. */
export interface LayerBounds {
  /** Bytes of all layers together. */
  readonly maxBytes: number;
  /** Time without use after which a layer goes, in `ms`. */
  readonly unusedMs: number;
}

/**
 * Which layers go: those that were not used for long, then the least recently used ones until `incomingBytes` more have room. One that is in use
 * stays in any case, so the rest may not be enough. A clock that was set back makes layers stay longer, never shorter.
 */
export function planLayerCollection(
  layers: readonly KeptLayer[],
  { maxBytes, unusedMs }: LayerBounds,
  { nowMs, incomingBytes = 0 }: { readonly nowMs: number; readonly incomingBytes?: number },
): readonly LayerKey[] {
  const oldestFirst = layers.filter(({ inUse }) => !inUse).sort((a, b) => a.lastUsedMs - b.lastUsedMs || (a.key < b.key ? -1 : 1));
  let bytes = incomingBytes + layers.reduce((sum, layer) => sum + layer.bytes, 0);
  const going: LayerKey[] = [];
  for (const layer of oldestFirst) {
    if (nowMs - layer.lastUsedMs <= unusedMs && bytes <= maxBytes) continue;
    going.push(layer.key);
    bytes -= layer.bytes;
  }
  return going;
}

import type { LayerStoreBounds } from './layer-store.ts';

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

/** The bounds of a store as people write them. */
export interface LayerSettings {
  /** All layers together, in `MiB`. */
  readonly maxMib: number;
  /** Free room of the disk that layers leave, in `MiB`. */
  readonly reserveMib: number;
  /** Days without use after which a layer goes. */
  readonly unusedDays: number;
}

/** What holds where nobody has said otherwise. */
export const DEFAULT_LAYER_SETTINGS: LayerSettings = { maxMib: 20_480, reserveMib: 5_120, unusedDays: 14 };

/** The bounds of these settings. */
export function layerBoundsOf({ maxMib, reserveMib, unusedDays }: LayerSettings): LayerStoreBounds {
  return { maxBytes: maxMib * MIB, reserveBytes: reserveMib * MIB, unusedMs: unusedDays * DAY_MS };
}

import { join } from 'node:path';
import { DEFAULT_LAYER_SETTINGS, LayerStore, layerBoundsOf } from '@firecrew/rootfs';
import * as z from 'zod';

const { maxMib, reserveMib, unusedDays } = DEFAULT_LAYER_SETTINGS;

/** Set-ups that are kept as layers, as the node's configuration says it; unknown keys are refused. */
export const layerConfigSchema = z.strictObject({
  maxMib: z.int().min(1).default(maxMib).describe('All layers together, in `MiB`.'),
  reserveMib: z.int().min(0).default(reserveMib).describe('Free room of the disk that layers leave, in `MiB`.'),
  unusedDays: z.number().positive().max(3650).default(unusedDays).describe('Days without use after which a layer goes.'),
});
export type LayerConfig = z.infer<typeof layerConfigSchema>;

/** The same as a shim's launch file says it. */
export const layerLaunchSchema = layerConfigSchema.extend({ root: z.string().startsWith('/') });
export type LayerLaunch = z.infer<typeof layerLaunchSchema>;

/** The settings of a node: its layers lie beside its turns, so that the disk of a VM becomes one by another name. */
export function layerLaunchOf(config: LayerConfig | null, home: string): LayerLaunch | null {
  return config === null ? null : { ...config, root: join(home, 'layers') };
}

/** The store of these settings. */
export function layerStoreOf({ root, ...settings }: LayerLaunch): LayerStore {
  return new LayerStore(root, layerBoundsOf(settings));
}

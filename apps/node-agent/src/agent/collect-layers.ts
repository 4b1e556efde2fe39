import type { Logger } from 'pino';
import { layerLaunchOf, layerStoreOf } from '../vm/layer-settings.ts';
import type { NodeConfig } from './config.ts';

/** Makes the store of layers and removes those that are not used any more; a failure is no reason to refuse turns. */
export async function collectLayers({ setupLayers, home }: Pick<NodeConfig, 'setupLayers' | 'home'>, log: Logger): Promise<void> {
  const settings = layerLaunchOf(setupLayers, home);
  if (settings === null) return;
  try {
    const store = layerStoreOf(settings);
    await store.prepare();
    const removed = await store.collect(Date.now());
    if (removed.length > 0) log.info({ layers: removed }, 'layers of set-ups that were not used any more are removed');
  } catch (error) {
    log.warn({ err: error }, 'the layers of set-ups could not be looked through');
  }
}

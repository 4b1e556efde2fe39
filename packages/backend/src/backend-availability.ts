import type { NodeCapabilities } from '@firecrew/protocol';
import type { Backend } from './backend-schema.ts';
import { isRunnable } from './find-backend.ts';

/** A node as its server knows it. */
export interface BackendNode {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  /** What it said last; null where it has said nothing. */
  readonly capabilities: Pick<NodeCapabilities, 'drivers' | 'modelRoutes'> | null;
}

/** Whether missions of a backend can run now, and where. */
export interface BackendAvailability {
  readonly available: boolean;
  /** Nodes that are online and can boot it, with the drivers they boot it with; those without a route that it needs are left out. */
  readonly nodes: { id: string; name: string; drivers: string[] }[];
  /** Why it is not available, for a person; empty where it is. */
  readonly detail: string;
}

/** Judges from what the nodes have said. A guest that nothing isolates has no model route, so it counts for none that needs one. */
export function backendAvailability(backend: Backend, nodes: readonly BackendNode[]): BackendAvailability {
  const none = (detail: string): BackendAvailability => ({ available: false, nodes: [], detail });
  if (!isRunnable(backend)) return none('its manifest has neither a credential contract nor a model route');
  const format = backend.modelRoute?.format;
  const booting = nodes
    .filter(({ online }) => online)
    .map(({ id, name, capabilities }) => ({
      id,
      name,
      drivers: (capabilities?.drivers ?? []).filter(({ backends }) => backends.includes(backend.name)),
      isRouted: capabilities?.modelRoutes?.some((route) => route.backend === backend.name && route.format === format) === true,
    }))
    .filter(({ drivers }) => drivers.length > 0);
  if (booting.length === 0) return none(['no node that is online can boot it', ...whyLacking(backend, nodes)].join('; '));
  const able = booting
    .map(({ id, name, drivers, isRouted }) => ({
      id,
      name,
      drivers: drivers.filter(({ isolation }) => format === undefined || (isRouted && isolation !== 'none')).map(({ driver }) => driver),
    }))
    .filter(({ drivers }) => drivers.length > 0);
  if (able.length === 0) return none(`no node that can boot it has a model route for it in the format ${format}`);
  return { available: true, nodes: able, detail: '' };
}

/** What each node says of the image that it cannot boot. */
export function whyLacking(backend: Pick<Backend, 'name'>, nodes: readonly Pick<BackendNode, 'name' | 'capabilities'>[]): string[] {
  return nodes.flatMap(({ name, capabilities }) =>
    (capabilities?.drivers ?? []).flatMap(({ driver, lacking = [] }) =>
      lacking.filter((item) => item.backend === backend.name).map(({ detail }) => `${name} with ${driver}: ${detail}`),
    ),
  );
}

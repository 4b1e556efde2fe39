import type { Backend } from '@firecrew/backend';
import type { Demand } from '@firecrew/placement';

/** What a backend asks of a node; parts it leaves out take the driver's default. */
export function demandOf(backend: Backend): Demand {
  const { memoryMib, diskMib, vcpus } = backend.demand;
  return {
    ...(memoryMib === undefined ? {} : { memoryMib }),
    ...(diskMib === undefined ? {} : { diskMib }),
    ...(vcpus === undefined ? {} : { vcpus }),
  };
}

import { join } from 'node:path';
import type { OpenLayer } from '@firecrew/rootfs';
import { guestHealth, type Vm } from '@firecrew/vmm';
import { vmFolderName } from '../turn-folder/vm-folder-name.ts';
import { type AttemptContext, attemptMarker } from './attempt-context.ts';

/** Boots a fresh VM of the attempt in a folder of its turn. What its guest opens towards the host goes to the egress gate. */
export async function bootVm(context: AttemptContext, name: string, layer: OpenLayer | null): Promise<Vm> {
  const { spec, paths } = context;
  return await context.driver.boot({
    vmId: `${spec.turnId}.${spec.iteration}.${spec.step}.${spec.attempt}.${name}`,
    folder: join(paths.root, vmFolderName(name)),
    guestAgent: context.guestAgent,
    bindPaths: context.caller.binds,
    path: context.caller.path,
    caBundle: context.caBundle,
    limits: { memoryMib: spec.demand.memoryMib, diskMib: spec.demand.diskMib },
    attemptMarker: attemptMarker(spec),
    allowUnisolated: spec.allowUnisolated,
    ...(layer === null ? {} : { layer }),
    modelRoute: context.model.isOffered,
    onStream: (stream, request) => {
      if (request.t === 'model' && context.model.exists) {
        stream.reply({ ok: true });
        context.model.handle(stream);
        return;
      }
      if (request.t !== 'tunnel') {
        stream.reply({ ok: false, code: 'no_route', message: 'this backend has no model route' });
        stream.end();
        return;
      }
      stream.reply({ ok: true });
      context.gate.handle(stream);
    },
    onRefused: (refusal) => context.events.add({ kind: 'link.refused', reason: refusal.reason }),
  });
}

/** Why the guest's way out is not there; undefined where it is. */
export async function proxyFault(vm: Vm): Promise<string | undefined> {
  const { proxy } = await guestHealth(await vm.session());
  return proxy.up ? undefined : `the guest's proxy port is not up: ${proxy.error ?? 'no reason given'}`;
}

import type { BackendView } from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderTable } from '../render/table.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';

/** `firecrew backend list`: what agents can run as, and whether they can now. */
export async function backendListCommand(context: CommandContext, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const backends = await client.backends();
    if (json) context.out.line(JSON.stringify(backends));
    else for (const line of renderBackends(backends)) context.out.line(line);
    return 0;
  });
}

/** `firecrew backend show NAME` */
export async function backendShowCommand(context: CommandContext, name: string, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const backends = await client.backends();
    const found = backends.find((backend) => backend.name === name);
    if (found === undefined)
      throw new UsageError('backend_unknown', `there is no backend ${JSON.stringify(name.slice(0, 64))}`, {
        id: name.slice(0, 64),
        action: `Use one of: ${backends.map((backend) => backend.name).join(', ')}.`,
      });
    if (json) context.out.line(JSON.stringify(found));
    else for (const line of renderBackend(found)) context.out.line(line);
    return 0;
  });
}

/** The backends as a table; one that cannot run says why. */
export function renderBackends(backends: readonly BackendView[]): string[] {
  const rows = backends.map((backend) => [
    cleanLine(backend.name, 64),
    cleanLine(backend.image ?? '-', 80),
    backend.modelRoute === null ? '-' : cleanLine(backend.modelRoute.format, 40),
    backend.available ? placesOf(backend) : `cannot run: ${cleanLine(backend.detail, 200)}`,
    cleanLine(backend.label, 100),
  ]);
  return renderTable(['backend', 'image', 'model route', 'runs on', 'what it is'], rows);
}

/** One backend as lines. */
export function renderBackend(backend: BackendView): string[] {
  const rows = [
    ['image', backend.image ?? "none of its own: the node's default, or the tools of its host"],
    ['drivers', backend.drivers.join(', ')],
    ['hosts', backend.hosts.length === 0 ? 'none' : backend.hosts.join(', ')],
    ['model route', backend.modelRoute === null ? 'needs none' : `needs one in the format ${backend.modelRoute.format}`],
    ['runs on', backend.available ? placesOf(backend) : `no node: ${backend.detail}`],
  ].map(([key = '', value = '']) => `${key.padEnd(12)}${cleanLine(value, 2_000)}`);
  return [`${cleanLine(backend.name, 64)}: ${cleanLine(backend.label, 100)}`, '', ...rows];
}

function placesOf({ nodes }: BackendView): string {
  return nodes.map(({ name, drivers }) => `${cleanLine(name, 40)} (${cleanLine(drivers.join(', '), 80)})`).join(', ');
}

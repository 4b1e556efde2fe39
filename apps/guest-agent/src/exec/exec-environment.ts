import { buildGuestEnvironment, checkEnvironment } from '@firecrew/spawn-bounds';
import type { AgentConfig } from '../agent-config.ts';
import type { LoopbackPorts } from '../link/loopback-pumps.ts';

/** Variables by which the processes of a VM and of an exec are found; only the agent sets them. */
export const ATTEMPT_VARIABLE = 'FIRECREW_ATTEMPT';
export const EXEC_VARIABLE = 'FIRECREW_EXEC';

/** What marks the processes of one exec; execs of other VMs on the same host may have the same id. */
export function execMark(attemptMarker: string, id: string): string {
  return `${attemptMarker}:${id}`;
}

/** The environment of an exec, or why it cannot be honoured: names the variable, never its value. */
export type ExecEnvironment =
  | { readonly ok: true; readonly environment: Record<string, string> }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** Builds what an exec gets: the configuration's, the proxy's, the caller's, then the platform's variables. */
export function execEnvironment(
  id: string,
  entries: Readonly<Record<string, string>> | null,
  config: Pick<AgentConfig, 'environment' | 'platform' | 'attemptMarker' | 'modelRoute'>,
  ports: LoopbackPorts,
): ExecEnvironment {
  const names = Object.keys(entries ?? {});
  const mark = names.find((name) => [ATTEMPT_VARIABLE, EXEC_VARIABLE].includes(name.toUpperCase()));
  if (mark !== undefined) {
    return { ok: false, code: 'environment_reserved_name', message: `the variable "${mark}" is set by the guest agent alone` };
  }
  // Which secrets may enter was decided on the host; here every name is allowed, and only what cannot be honoured is refused.
  const checked = checkEnvironment(entries, { contract: names, reservedPrefix: '\0' });
  if (checked.verdict === 'refused') return { ok: false, code: checked.rule, message: checked.message };
  const environment = buildGuestEnvironment({
    image: config.environment,
    caller: checked.environment,
    platform: { ...config.platform, [ATTEMPT_VARIABLE]: config.attemptMarker, [EXEC_VARIABLE]: execMark(config.attemptMarker, id) },
    egressUp: ports.proxy !== undefined,
    ...(ports.proxy === undefined ? {} : { proxyPort: ports.proxy }),
    ...(ports.model === undefined || !config.modelRoute ? {} : { modelPort: ports.model }),
  });
  return { ok: true, environment };
}

import { accessSync, constants, readFileSync } from 'node:fs';
import { messageOf } from '@firecrew/base';
import { probeUpstream, type UpstreamProbe } from '@firecrew/credential-broker';
import { decideOperatorWay } from '@firecrew/egress-policy';
import { makeChain } from '@firecrew/egress-proxy';
import { readUpstream } from '@firecrew/model-route';
import { openExistingHome } from '../home/open-home.ts';
import { readSettings } from '../settings/read-settings.ts';
import type { Settings } from '../settings/settings.ts';
import { readJoined } from '../supervisor/service-config.ts';
import { type CommandContext, homePathOf } from './context.ts';
import type { Finding } from './doctor.ts';
import { judgeCredentialFile, listCredentialFiles, lookAt } from './doctor-credentials.ts';

type Route = NonNullable<Settings['modelRoutes']>[string];

/**
 * Which model routes the settings of the home name, whether their files are there and those with credentials for those who read them alone, and whether the way
 * to each upstream leads as far as verified TLS.
 */
export async function probeModelRoutes(context: CommandContext): Promise<Finding[]> {
  const root = homePathOf(context);
  const check = 'model routes';
  try {
    const home = openExistingHome(root);
    const settings = home === undefined ? {} : readSettings(home.paths, context.env, {});
    const { modelRoutes = {} } = settings;
    const hasServer = home !== undefined && readJoined(home) === undefined;
    const files = listCredentialFiles(settings, process.getuid?.() === 0, hasServer);
    return [
      judgeRoutes(modelRoutes, `$EDITOR ${root}/config.json`, missing),
      ...files.map((file) => judgeCredentialFile(file, lookAt(file))),
      ...(await Promise.all(
        Object.entries(modelRoutes).map(async ([backend, route]) => await probeRoute(backend, route, settings, context)),
      )),
    ];
  } catch (error) {
    // The check of the settings says what is wrong with them, and how to mend it.
    return [{ check, state: 'warning', detail: messageOf(error), fix: null }];
  }
}

/** What is told of routes: backend and format alone, and the first file of them that `faultOf` finds a fault with. */
export function judgeRoutes(
  routes: NonNullable<Settings['modelRoutes']>,
  edit: string,
  faultOf: (file: string) => string | undefined,
): Finding {
  const check = 'model routes';
  const named = Object.entries(routes);
  for (const [backend, { caFile, priceFile }] of named) {
    for (const file of [caFile, priceFile]) {
      const fault = file === undefined ? undefined : faultOf(file);
      if (fault !== undefined) return { check, state: 'warning', detail: `that of ${backend} names ${file}: ${fault}`, fix: edit };
    }
  }
  const detail = named.map(([backend, { format }]) => `${backend} (${format})`).join(', ');
  return {
    check,
    state: 'ok',
    detail: detail === '' ? 'none: `run --needs-model-route` waits for a node that has one' : detail,
    fix: null,
  };
}

const STAGES: Readonly<Record<Extract<UpstreamProbe, { ok: false }>['stage'], string>> = {
  dns: 'its name cannot be looked up',
  connect: 'it cannot be dialled',
  proxy: 'the egress proxy opens no tunnel to it',
  tls: 'it cannot show who it is',
};

/** What is told of the way to one upstream, and nothing of where that is. */
export function judgeProbe(backend: string, isTls: boolean, way: 'direct' | 'proxy', probe: UpstreamProbe): Finding {
  const check = 'upstream';
  const subject = `that of the model route of ${backend}`;
  if (!probe.ok) return { check, state: 'problem', detail: `${subject}: ${STAGES[probe.stage]} (${probe.detail})`, fix: null };
  const how = `${isTls ? 'answers with verified TLS' : 'can be dialled'}, ${way === 'proxy' ? 'through the egress proxy' : 'directly'}`;
  return { check, state: 'ok', detail: `${subject} ${how}; no call was made`, fix: null };
}

async function probeRoute(backend: string, route: Route, { egressProxy }: Settings, { env }: CommandContext): Promise<Finding> {
  try {
    const upstream = readUpstream(route.upstream);
    const chain = egressProxy == null || !route.viaProxy ? undefined : makeChain(egressProxy, env);
    const way = decideOperatorWay(chain?.chain, upstream.host);
    const ca = route.caFile === undefined ? {} : { ca: readFileSync(route.caFile, 'utf8') };
    const probe = await probeUpstream({ upstream, ...ca, ...(chain !== undefined && way === 'proxy' ? { chain } : {}) });
    return judgeProbe(backend, upstream.isTls, way, probe);
  } catch (error) {
    return {
      check: 'upstream',
      state: 'warning',
      detail: `that of the model route of ${backend} was not tried: ${messageOf(error)}`,
      fix: null,
    };
  }
}

function missing(file: string): string | undefined {
  try {
    accessSync(file, constants.F_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'it is not there' : undefined;
  }
}

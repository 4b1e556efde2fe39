import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError } from '@firecrew/base';
import { removeGroup, wasOutOfMemory } from '../cgroup/vm-cgroup.ts';
import type { Machine } from '../machine/machine.ts';
import type { VmExit } from '../port/driver.ts';
import { describeEnd } from './describe-end.ts';
import { type FirecrackerFeatures, judgeVersion, MIN_FIRECRACKER } from './features.ts';
import { FirecrackerApi, failed } from './firecracker-api.ts';
import { type ApiCall, planCalls } from './plan-calls.ts';
import { faultOfMetrics } from './read-metrics.ts';
import { RUN_NAMES } from './run-places.ts';
import { TextPipe } from './text-pipe.ts';
import type { ProcessEnd, VmmProcess } from './vmm-process.ts';
import type { FirecrackerLaunch, StartedFirecracker, Workplace } from './workplace.ts';

/** Time to pass the keys to the guest, in `ms`. */
const KEYS_TIMEOUT_MS = 3000;

/** Time a process has to end by itself once a call has failed, in `ms`. */
const ENDING_MS = 200;

/** What the host holds for one Firecracker. */
interface Holdings {
  readonly workplace: Workplace;
  readonly console: TextPipe;
  readonly log: TextPipe;
  readonly metrics: TextPipe;
}

/**
 * Starts a Firecracker in a workplace that is made, configures it for its version, and starts its guest. Rejects with
 * `firecracker_failed`, `firecracker_refused`, `firecracker_unsupported`, `jail_failed`, `pipe_failed`; nothing of it runs then.
 */
export async function startFirecracker(launch: FirecrackerLaunch, workplace: Workplace): Promise<Machine> {
  const held = { workplace, ...(await openPipes(launch)) };
  let started: StartedFirecracker | undefined;
  let api: FirecrackerApi | undefined;
  try {
    started = await workplace.start();
    api = await dialApi(launch, started.process);
    await configure(api, launch, started);
    return machineOf(launch, held, started.process, api);
  } catch (error) {
    const words = await endIt(held, started?.process);
    await release(held, api);
    throw words === '' || !(error instanceof CodedError) ? error : withWords(error, words);
  }
}

/** Ends what was started, and says how it ended when it did so by itself: that is nearer to the reason than a connection that was lost. */
async function endIt(held: Holdings, process: VmmProcess | undefined): Promise<string> {
  if (process === undefined) return describeWords(held, undefined);
  const own = process.exited.then((end) => describeExit(held, process, end, false));
  const exit = await Promise.race([own, delay(ENDING_MS)]);
  await process.kill();
  return exit === undefined ? describeWords(held, process) : `; it ended: ${exit.detail}`;
}

function withWords(error: CodedError, words: string): CodedError {
  const { action, id } = error;
  // any code: that of the error, whose message gets more words
  return new CodedError(error.code, `${error.message}${words}`, {
    ...(action === undefined ? {} : { action }),
    ...(id === undefined ? {} : { id }),
    cause: error,
  });
}

async function openPipes({ run, spec }: FirecrackerLaunch): Promise<Omit<Holdings, 'workplace'>> {
  const paths = [RUN_NAMES.console, RUN_NAMES.log, RUN_NAMES.metrics].map((name) => join(run.folder, name));
  const [console, log, metrics] = await TextPipe.open(paths, spec.owner);
  if (console === undefined || log === undefined || metrics === undefined) throw new TypeError('a pipe is missing');
  return { console, log, metrics };
}

async function dialApi({ run, settings }: FirecrackerLaunch, process: VmmProcess): Promise<FirecrackerApi> {
  const gone = process.exited.then((end) => {
    throw failed(`it ended (${end?.signal ?? `exit ${end?.code ?? 'unknown'}`}) before it listened`);
  });
  gone.catch(() => undefined);
  return FirecrackerApi.dial(run.apiSocket, { timeoutMs: settings.apiTimeoutMs, gone });
}

async function configure(api: FirecrackerApi, launch: FirecrackerLaunch, { paths, serials }: StartedFirecracker): Promise<void> {
  const { settings, spec, rescue } = launch;
  // A process that answers slowly, call after call, is given up as one that does not.
  const giveUp = performance.now() + settings.bootTimeoutMs;
  const call = (wanted: ApiCall): Promise<unknown> =>
    api.call(wanted, Math.max(1, Math.min(settings.apiTimeoutMs, giveUp - performance.now())));
  const features = featuresOf(await call({ method: 'GET', path: '/version' }));
  const { memoryMib } = spec.limits;
  const vm = { memoryMib, cpus: settings.cpus, paths, serials, diskLimits: settings.diskLimits, rescue };
  for (const one of planCalls(vm, features)) await call(one);
}

/** Of the process that was started, not of a number in a file: a field that it does not know fails every boot. */
function featuresOf(answer: unknown): FirecrackerFeatures {
  const said = typeof answer === 'object' && answer !== null && 'firecracker_version' in answer ? answer.firecracker_version : undefined;
  const version = typeof said === 'string' ? said.slice(0, 64) : '';
  const verdict = judgeVersion(version);
  if (verdict.supported) return verdict.features;
  const { major, minor } = MIN_FIRECRACKER;
  throw new CodedError('firecracker_unsupported', `Firecracker ${JSON.stringify(version)} cannot be used (${verdict.reason}).`, {
    id: version,
    action: `Install a release from ${major}.${minor} on, below ${major + 1}.0.`,
  });
}

function machineOf(launch: FirecrackerLaunch, held: Holdings, process: VmmProcess, api: FirecrackerApi): Machine {
  let wasAsked = false;
  const exited = process.exited.then((end) => describeExit(held, process, end, wasAsked));
  const askToEnd = (): Promise<void> => api.call(CTRL_ALT_DEL, KEYS_TIMEOUT_MS).then(() => undefined);
  return {
    console: held.console.tail,
    exited,
    expectEnd: () => {
      wasAsked = true;
    },
    // The keyboard is emulated on x86 alone.
    ...(launch.settings.architecture === 'x64' ? { askToEnd } : {}),
    kill: () => process.kill(),
    release: () => release(held, api),
  };
}

const CTRL_ALT_DEL = { method: 'PUT', path: '/actions', body: { action_type: 'SendCtrlAltDel' } } as const;

function describeExit(held: Holdings, process: VmmProcess, end: ProcessEnd, wasAsked: boolean): VmExit {
  const { group } = held.workplace;
  const words = describeWords(held, process);
  const cause = describeEnd({
    exit: end,
    fault: faultOfMetrics(held.metrics.tail.text()),
    wasAsked,
    outOfMemory: group !== undefined && wasOutOfMemory(group),
    console: held.console.tail.lines(40),
  });
  return { code: end?.code ?? null, signal: end?.signal ?? null, ...(cause === 'unknown' ? {} : { cause }), detail: `${cause}${words}` };
}

/** What is left of its messages, its log and its console, for a person. */
function describeWords({ console, log, metrics }: Holdings, process: VmmProcess | undefined): string {
  for (const pipe of [console, log, metrics]) pipe.drain();
  const said = [process?.messages() ?? '', ...log.tail.lines(3)].filter((text) => text !== '').join(' | ');
  const shown = console.tail.lines(6).join(' | ');
  return `${said === '' ? '' : `; Firecracker said: ${said}`}${shown === '' ? '' : `; the console ends with: ${shown}`}`;
}

async function release({ workplace, console, log, metrics }: Holdings, api: FirecrackerApi | undefined): Promise<string[]> {
  api?.close();
  for (const pipe of [console, log, metrics]) pipe.close();
  const { group } = workplace;
  return group === undefined || (await removeGroup(group)) ? [] : [group];
}

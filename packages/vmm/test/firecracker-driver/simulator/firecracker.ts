import { startApiServer } from './api-server.ts';
import type { HttpAnswer, HttpRequest } from './http-connection.ts';
import type { SimulatorOptions } from './options.ts';
import { Vmm } from './vmm.ts';

/** Counters that the program raises before it ends with one of its codes. */
const COUNTERS: ReadonlyMap<number, Readonly<Record<string, unknown>>> = new Map([
  [148, { seccomp: { num_faults: 1 } }],
  [149, { signals: { sigbus: 1 } }],
  [150, { signals: { sigsegv: 1 } }],
  [151, { signals: { sigxfsz: 1 } }],
]);

/** Runs a simulated Firecracker until it ends. Its own folder is the jail's root when `--simulated-root` says so. */
export async function runFirecracker(options: SimulatorOptions, args: readonly string[]): Promise<void> {
  if (args.includes('--version')) {
    process.stdout.write(`Firecracker v${options.version}\n\n`);
    return;
  }
  const value = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const id = value('--id') ?? 'anonymous-instance';
  const known = new Set(['--id', '--api-sock', '--simulated-root', '--start-time-us', '--start-time-cpu-us', '--parent-cpu-time-us']);
  const unknown = args.find((arg, at) => at % 2 === 0 && !known.has(arg));
  if (unknown !== undefined)
    return die(`Arguments parsing error: Found argument '${unknown}' which wasn't expected, or isn't valid in this context.`, 153);
  if (!/^[A-Za-z0-9-]{1,64}$/.test(id)) return die(`Invalid instance ID: ${id}`, 134);
  const root = value('--simulated-root') ?? '/';
  const socket = value('--api-sock') ?? '/run/firecracker.socket';
  const vmm = new Vmm({
    options,
    id,
    root,
    exit: (code, faults = COUNTERS.get(code) ?? {}) => {
      vmm.writeMetrics(faults);
      process.exit(code);
    },
  });
  process.on('SIGUSR1', () => {
    if (typeof options.onSignal !== 'number') return vmm.panic();
    vmm.writeMetrics(COUNTERS.get(options.onSignal) ?? {});
    process.exit(options.onSignal);
  });
  if (options.api === 'absent') {
    setInterval(() => undefined, 60_000);
    return;
  }
  try {
    await startApiServer(root === '/' ? socket : `${root}${socket}`, (request) => serve(options, vmm, request));
  } catch (error) {
    die(`Failed to bind and run the HTTP server: ${error instanceof Error ? error.message : ''}`, 1);
  }
}

async function serve({ api }: SimulatorOptions, vmm: Vmm, request: HttpRequest): Promise<HttpAnswer | 'never'> {
  if (api === 'silent' || (api === 'silentOnceStarted' && vmm.isRunning)) return 'never';
  if (api === 'notJson') return { status: 400, body: '{ "error": "Invalid header.\nAll previous unanswered requests will be dropped." }' };
  return vmm.handle(request);
}

function die(words: string, code: number): void {
  process.stderr.write(`${words}\n`);
  process.exit(code);
}

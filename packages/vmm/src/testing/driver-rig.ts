import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkRefusal, LinkStream } from '@firecrew/link';
import type { ExecEnd, GuestRequest } from '@firecrew/protocol';
import { followExec, startExec, waitExec } from '../guest-client/execs.ts';
import type { BootSpec, Driver, Vm } from '../port/driver.ts';

/** What the cases need of the machine they run on. */
export interface DriverRig {
  readonly driver: Driver;
  /** A spec for a new VM in a fresh folder; the cases set the handlers. */
  readonly newSpec: () => Promise<BootSpec>;
  /** Pause between two cuts of the link in the case that cuts it again and again, in `ms`; default 150. */
  readonly cutEveryMs?: number;
  /** A driver and a spec whose guest agent cannot come up. */
  readonly broken: () => Promise<{ readonly driver: Driver; readonly spec: BootSpec }>;
}

/** One promise of the port; `run` rejects when the driver breaks it. */
export interface DriverCase {
  readonly name: string;
  /** Only a driver that isolates promises it. */
  readonly needsIsolation: boolean;
  /** It ends its VM, or looks at how VMs begin and end. */
  readonly needsOwnVm: boolean;
  run(rig: DriverRig): Promise<void>;
}

/** A booted VM with what the guest asked of its host. */
export interface BootedVm {
  readonly vm: Vm;
  readonly spec: BootSpec;
  readonly refusals: LinkRefusal[];
  readonly requests: GuestRequest[];
}

/** Time a condition may take to come true, in `ms`. */
const CONDITION_MS = 15_000;
const EXEC_MS = 20_000;

/** Boots a VM, runs the case with it and destroys it; a VM that leaves something fails the case. */
export async function withVm(
  rig: DriverRig,
  run: (booted: BootedVm) => Promise<void>,
  onStream: (stream: LinkStream) => void = echo,
): Promise<void> {
  const refusals: LinkRefusal[] = [];
  const requests: GuestRequest[] = [];
  const made = await rig.newSpec();
  const spec: BootSpec = {
    ...made,
    onRefused: (refusal) => refusals.push(refusal),
    onStream: (stream, request) => {
      requests.push(request);
      onStream(stream);
    },
  };
  const vm = await rig.driver.boot(spec);
  try {
    await run({ vm, spec, refusals, requests });
  } finally {
    const report = await vm.destroy();
    assert.deepEqual(report.left, []);
    assert.equal(report.removed, true);
  }
}

/** Sends back what comes, and ends when that ends. */
export function echo(stream: LinkStream): void {
  stream.reply({ ok: true });
  stream.pipe(stream);
}

/** Runs a shell command to its end and gives its end and whole output. */
export async function shell(
  vm: Vm,
  command: string,
  options: { timeoutMs?: number; outputLimitBytes?: number; env?: Record<string, string>; cwd?: string } = {},
): Promise<ExecEnd & { output: string }> {
  const session = await vm.session();
  const id = randomUUID();
  const timeoutMs = options.timeoutMs ?? EXEC_MS;
  await startExec(session, { cwd: vm.guestPaths.workspace, ...options, id, argv: ['/bin/sh', '-c', command], timeoutMs });
  const end = await waitExec(session, id, timeoutMs);
  return { ...end, output: await text(await followExec(session, id, 0)) };
}

/** Waits until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const from = performance.now();
  while (!(await holds())) {
    if (performance.now() - from > CONDITION_MS) throw new Error(`this did not come true: ${what}`);
    await delay(10);
  }
}

/** True while a process has a command line that begins like this, as the guest sees it: a host does not see into every guest. */
export async function runs(vm: Vm, commandText: string): Promise<boolean> {
  const { output } = await shell(vm, `for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $f; echo; done 2>/dev/null`, { cwd: '/' });
  return output.split('\n').some((line) => line.startsWith(commandText));
}

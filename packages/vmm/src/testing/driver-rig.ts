import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
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
}

/** One promise of the port; `run` rejects when the driver breaks it. */
export interface DriverCase {
  readonly name: string;
  /** Only a driver that isolates promises it. */
  readonly needsIsolation: boolean;
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
  options: { timeoutMs?: number; outputLimitBytes?: number; env?: Record<string, string> } = {},
): Promise<ExecEnd & { output: string }> {
  const session = await vm.session();
  const id = randomUUID();
  const timeoutMs = options.timeoutMs ?? EXEC_MS;
  await startExec(session, { ...options, id, argv: ['/bin/sh', '-c', command], cwd: vm.guestPaths.workspace, timeoutMs });
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

/** True while one of the VM's processes has a command line that begins like this, as the host sees it. */
export async function runs(vm: Vm, commandText: string): Promise<boolean> {
  return (await vm.pids()).some((pid) => commandLine(pid).startsWith(commandText));
}

/** The command line of a process, empty when it is gone. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

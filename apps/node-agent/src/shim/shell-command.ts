import { CHECK_FEEDBACK_BYTES } from '@firecrew/stop-gate';
import type { Vm } from '@firecrew/vmm';
import type { AttemptContext } from './attempt-context.ts';
import { noteShortages } from './note-shortages.ts';
import { OutputTail } from './output-tail.ts';
import { type Command, runCommand } from './run-command.ts';

/** Bytes of output of one command that the guest keeps. */
const OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024;
/** Least time a command is given, so that a deadline of now is still a deadline. */
const MIN_TIMEOUT_MS = 1;
/** Characters of a set-up's output that a reason repeats. */
const REASON_CHARS = 800;

/** A shell command in the workspace of a VM, whose output goes to the log and, at its end, to `tail`. */
export function shellCommand(context: AttemptContext, vm: Vm, id: string, command: string, timeoutMs: number, tail: OutputTail): Command {
  return {
    id,
    argv: ['/bin/sh', '-c', command],
    cwd: vm.guestPaths.workspace,
    env: null,
    ...commandBounds(context, timeoutMs),
    onOutput: (bytes: Uint8Array) => {
      tail.add(bytes);
      context.log.write(bytes);
    },
  };
}

/** A command never outlives its attempt. */
export function commandBounds(context: AttemptContext, timeoutMs: number): Pick<Command, 'timeoutMs' | 'outputLimitBytes'> {
  const left = Math.floor(context.deadlineMs - context.clock());
  return {
    timeoutMs: Math.max(MIN_TIMEOUT_MS, Math.min(timeoutMs, left, context.spec.limits.turnTimeoutMs)),
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  };
}

/** Where and why a set-up is run. */
export interface SetupRun {
  readonly command: string;
  readonly timeoutMs: number;
  /** Never used twice in one VM. */
  readonly id: string;
  readonly purpose: 'agent' | 'verify';
  readonly round: number;
  /** What of it is told in the log. */
  readonly heading: string;
}

/** Runs a set-up with its own egress policy, and tells how it ended. Gives what went wrong, or undefined. Throws as `runCommand` does. */
export async function runSetup(context: AttemptContext, vm: Vm, run: SetupRun, signal: AbortSignal): Promise<string | undefined> {
  const started = context.clock();
  await context.gate.open('setup');
  context.log.heading(`${run.heading}: ${oneLine(run.command)}`);
  const tail = new OutputTail(CHECK_FEEDBACK_BYTES);
  const end = await runCommand(vm, shellCommand(context, vm, run.id, run.command, run.timeoutMs, tail), signal);
  await context.gate.close();
  const shortage = noteShortages(context, 'the set-up', end);
  const timedOut = end.kind === 'timed_out';
  const { purpose, round } = run;
  const { exitCode } = end;
  context.events.add({
    kind: 'setup.ended',
    round,
    purpose,
    exitCode,
    signal: end.signal,
    timedOut,
    durationMs: context.clock() - started,
  });
  if (end.kind === 'exited' && exitCode === 0) return undefined;
  // What an agent ran out of before has no part in this failure.
  context.state.exhausted = shortage;
  const how = timedOut
    ? 'did not end within its time limit'
    : exitCode === null
      ? `was ended by ${end.signal ?? 'a signal'}`
      : `exited with status ${exitCode}`;
  return `the set-up ${how}: ${tail.text().slice(-REASON_CHARS)}`;
}

/** A command as one line of a heading. */
export function oneLine(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > 200 ? `${line.slice(0, 200)}...` : line;
}

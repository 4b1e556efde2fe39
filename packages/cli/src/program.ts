import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { FirecrewApiError } from '@firecrew/sdk';
import { CommanderError } from 'commander';
import { buildProgram, type Invocation } from './build-program.ts';
import type { CommandContext } from './commands/context.ts';
import { dispatch } from './dispatch.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { cleanLine } from './render/clean-text.ts';
import { processOutput } from './render/output.ts';

/** What a call of the command is made of. */
export interface ProgramCall {
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Runs one call and gives its exit code. */
export async function runProgram(args: readonly string[], call: ProgramCall): Promise<number> {
  const out = processOutput(call.env);
  let wanted: Invocation | undefined;
  const program = buildProgram(call.version, (invocation) => {
    wanted = invocation;
  });
  try {
    await program.parseAsync([...args], { from: 'user' });
    if (wanted === undefined) return EXIT.completed;
    const context: CommandContext = { ...call, out, homeFlag: wanted.home };
    return await dispatch(context, wanted);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.completed : EXIT.usage;
    if (args.includes('--json')) out.line(JSON.stringify({ error: errorBody(error) }));
    for (const line of describeError(error)) out.note(line);
    return exitCodeOf(error);
  }
}

/** An error for people: its code, what happened to which id, and what to do. */
export function describeError(error: unknown): string[] {
  const { code, message, action } = errorBody(error);
  const lines = [`firecrew: ${code}: ${cleanLine(message, 4_000)}`];
  if (action !== undefined) lines.push(`          ${cleanLine(action)}`);
  if (code === 'internal' && error instanceof Error && error.stack !== undefined) lines.push(...error.stack.split('\n').slice(1));
  return lines;
}

/** An error as programs read it. */
export function errorBody(error: unknown): { code: string; message: string; action?: string; id?: string } {
  const message = messageOf(error);
  if (!(error instanceof CodedError || error instanceof FirecrewApiError)) return { code: codeOf(error) ?? 'internal', message };
  return {
    code: error.code,
    message,
    ...(error.action === undefined ? {} : { action: error.action }),
    ...(error.id === undefined ? {} : { id: error.id }),
  };
}

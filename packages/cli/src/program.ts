import { CommanderError } from 'commander';
import { buildProgram, type Invocation } from './build-program.ts';
import type { CommandContext } from './commands/context.ts';
import { describeError, errorBody } from './describe-error.ts';
import { dispatch } from './dispatch.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
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

import type { Invocation } from './build-program.ts';
import type { CommandContext } from './commands/context.ts';
import { UsageError } from './exit-codes.ts';

type Run = (context: CommandContext, invocation: Invocation) => Promise<number>;

const flag = (invocation: Invocation, name: string): boolean => invocation.options[name] === true;
const text = (invocation: Invocation, name: string): string | undefined => {
  const value = invocation.options[name];
  return typeof value === 'string' ? value : undefined;
};

/** Each command loads what it needs, and nothing of the others. */
const COMMANDS: Readonly<Record<string, Run>> = {
  up: async (context, call) => {
    const { upCommand } = await import('./commands/up.ts');
    const { settingsOfFlags } = await import('./settings/settings.ts');
    return await upCommand(context, { json: flag(call, 'json'), settings: settingsOfFlags(call.options) });
  },
  down: async (context, call) => {
    const { downCommand } = await import('./commands/down.ts');
    return await downCommand(context, { force: flag(call, 'force'), json: flag(call, 'json') });
  },
  status: async (context, call) => {
    const { statusCommand } = await import('./commands/status.ts');
    return await statusCommand(context, { json: flag(call, 'json') });
  },
  supervise: async (context) => {
    const { superviseCommand } = await import('./commands/supervise.ts');
    return await superviseCommand(context);
  },
};

/** Carries out one parsed call; gives its exit code. */
export async function dispatch(context: CommandContext, invocation: Invocation): Promise<number> {
  const run = COMMANDS[invocation.command];
  if (run === undefined) throw new UsageError('command_unknown', `there is no command ${invocation.command}`);
  return await run(context, invocation);
}

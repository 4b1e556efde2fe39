import type { Invocation } from './build-program.ts';
import type { CommandContext } from './commands/context.ts';
import { UsageError } from './exit-codes.ts';

type Run = (context: CommandContext, invocation: Invocation) => Promise<number>;

const flag = (call: Invocation, name: string): boolean => call.options[name] === true;
const text = (call: Invocation, name: string): string | undefined => {
  const value = call.options[name];
  return typeof value === 'string' ? value : undefined;
};
const first = (call: Invocation): string => call.args[0] ?? '';
const json = (call: Invocation): boolean => flag(call, 'json');

const keyOptions = (call: Invocation) => ({ roles: call.args, dryRun: flag(call, 'dryRun'), json: json(call) });

/** Each command loads what it needs, and nothing of the others. */
const COMMANDS: Readonly<Record<string, Run>> = {
  up: async (context, call) => {
    const [{ upCommand }, { settingsOfFlags }] = await Promise.all([import('./commands/up.ts'), import('./settings/settings.ts')]);
    return await upCommand(context, { json: json(call), settings: settingsOfFlags(call.options, context.cwd) });
  },
  down: async (context, call) =>
    await (await import('./commands/down.ts')).downCommand(context, { force: flag(call, 'force'), json: json(call) }),
  status: async (context, call) => await (await import('./commands/status.ts')).statusCommand(context, { json: json(call) }),
  doctor: async (context, call) => {
    const options = { json: json(call), vmSelftest: flag(call, 'vmSelftest') };
    return await (await import('./commands/doctor.ts')).doctorCommand(context, options);
  },
  version: async (context, call) => await (await import('./commands/version.ts')).versionCommand(context, json(call)),
  supervise: async (context) => await (await import('./commands/supervise.ts')).superviseCommand(context),
  run: async (context, call) => await (await import('./commands/run.ts')).runCommand(context, call.options),
  missions: async (context, call) =>
    await (await import('./commands/missions.ts')).missionsCommand(context, { limit: text(call, 'limit') ?? '', json: json(call) }),
  show: async (context, call) => await (await import('./commands/missions.ts')).showCommand(context, first(call), json(call)),
  cancel: async (context, call) => await (await import('./commands/missions.ts')).cancelCommand(context, first(call), json(call)),
  retry: async (context, call) =>
    await (await import('./commands/missions.ts')).retryCommand(context, first(call), text(call, 'phase'), json(call)),
  approve: async (context, call) =>
    await (await import('./commands/missions.ts')).approveCommand(context, first(call), text(call, 'phase'), json(call)),
  logs: async (context, call) =>
    await (await import('./commands/follow.ts')).logsCommand(context, first(call), { follow: flag(call, 'follow'), json: json(call) }),
  events: async (context, call) => {
    const options = { follow: flag(call, 'follow'), after: text(call, 'after') ?? '0', json: json(call) };
    return await (await import('./commands/follow.ts')).eventsCommand(context, first(call), options);
  },
  fetch: async (context, call) => {
    const options = { repo: text(call, 'repo'), push: text(call, 'push'), pushDirty: flag(call, 'pushDirty'), json: json(call) };
    return await (await import('./commands/fetch.ts')).fetchCommand(context, first(call), options);
  },
  artifacts: async (context, call) =>
    await (await import('./commands/artifacts.ts')).artifactsCommand(context, first(call), {
      download: text(call, 'download'),
      archive: text(call, 'archive'),
      json: json(call),
    }),
  'backend list': async (context, call) => await (await import('./commands/backends.ts')).backendListCommand(context, json(call)),
  'backend show': async (context, call) =>
    await (await import('./commands/backends.ts')).backendShowCommand(context, first(call), json(call)),
  fleet: async (context, call) => await (await import('./commands/fleet.ts')).fleetCommand(context, json(call)),
  'node vms': async (context, call) => await (await import('./commands/fleet.ts')).nodeVmsCommand(context, json(call)),
  'node token': async (context, call) => await (await import('./commands/fleet.ts')).nodeTokenCommand(context, json(call)),
  'seat list': async (context, call) => await (await import('./commands/seats.ts')).seatListCommand(context, json(call)),
  'seat show': async (context, call) => await (await import('./commands/seat-show.ts')).seatShowCommand(context, first(call), json(call)),
  'seat link': async (context, call) => {
    const { BUDGET_FLAGS } = await import('./seats/budget-flags.ts');
    const budget = Object.fromEntries(Object.keys(BUDGET_FLAGS).map((name) => [name, text(call, name)]));
    const options = { turns: text(call, 'turns'), lease: text(call, 'lease'), budget, dryRun: flag(call, 'dryRun'), json: json(call) };
    return await (await import('./commands/seat-link.ts')).seatLinkCommand(context, first(call), options);
  },
  'seat unlink': async (context, call) => {
    const options = { dryRun: flag(call, 'dryRun'), json: json(call) };
    return await (await import('./commands/seats.ts')).seatUnlinkCommand(context, first(call), options);
  },
  'seat mint': async (context, call) => await (await import('./commands/seats.ts')).seatMintCommand(context, keyOptions(call)),
  'seat rotate': async (context, call) => await (await import('./commands/seats.ts')).seatRotateCommand(context, keyOptions(call)),
  'seat revoke': async (context, call) => await (await import('./commands/seats.ts')).seatRevokeCommand(context, keyOptions(call)),
  'seat whoami': async (context, call) => await (await import('./commands/seats.ts')).seatWhoamiCommand(context, call.args[0], json(call)),
  'recipe list': async (context, call) => (await import('./commands/recipes.ts')).recipeListCommand(context, json(call)),
  'recipe show': async (context, call) => (await import('./commands/recipes.ts')).recipeShowCommand(context, first(call), json(call)),
  'node drain': async (context, call) =>
    await (await import('./commands/fleet.ts')).nodeDrainCommand(context, first(call), { draining: true, json: json(call) }),
  'node undrain': async (context, call) =>
    await (await import('./commands/fleet.ts')).nodeDrainCommand(context, first(call), { draining: false, json: json(call) }),
  'node join': async (context, call) => {
    const options = { token: text(call, 'token') ?? '', name: text(call, 'name') ?? '', json: json(call) };
    return await (await import('./commands/fleet.ts')).nodeJoinCommand(context, first(call), options);
  },
  'policy check': async (context, call) =>
    await (await import('./commands/policy.ts')).policyCheckCommand(context, first(call), call.options),
  'policy explain': async (context, call) =>
    await (await import('./commands/policy.ts')).policyExplainCommand(context, first(call), json(call)),
  'policy learn': async (context, call) =>
    await (await import('./commands/policy-learn.ts')).policyLearnCommand(context, first(call), {
      policy: text(call, 'policy'),
      rule: text(call, 'rule') ?? 'learned',
      out: text(call, 'out'),
      json: json(call),
    }),
  'policy audit': async (context, call) => await (await import('./commands/policy.ts')).policyAuditCommand(context, first(call)),
  'image build': async (context, call) =>
    await (await import('./commands/build-images.ts')).imageBuildCommand(context, call.args[0], call.options),
  'image kernel': async (context, call) => await (await import('./commands/build-images.ts')).imageKernelCommand(context, call.options),
  'image payload': async (context, call) => await (await import('./commands/build-images.ts')).imagePayloadCommand(context, call.options),
  'image list': async (context, call) => await (await import('./commands/images.ts')).imageListCommand(context, json(call)),
  'image verify': async (context, call) => await (await import('./commands/images.ts')).imageVerifyCommand(context, call.args, json(call)),
  'image export': async (context, call) => {
    const options = { output: text(call, 'output') ?? '', json: json(call) };
    return await (await import('./commands/images.ts')).imageExportCommand(context, first(call), options);
  },
  'image import': async (context, call) => {
    const options = { name: text(call, 'name'), expect: text(call, 'expect'), json: json(call) };
    return await (await import('./commands/images.ts')).imageImportCommand(context, first(call), options);
  },
  'image gc': async (context, call) =>
    await (await import('./commands/images.ts')).imageGcCommand(context, { grace: text(call, 'grace'), json: json(call) }),
  'image remove': async (context, call) =>
    await (await import('./commands/images.ts')).imageRemoveCommand(context, first(call), json(call)),
};

/** The commands that can be carried out. */
export const COMMAND_NAMES: readonly string[] = Object.keys(COMMANDS);

/** Carries out one parsed call; gives its exit code. */
export async function dispatch(context: CommandContext, invocation: Invocation): Promise<number> {
  const run = COMMANDS[invocation.command];
  if (run === undefined) throw new UsageError('command_unknown', `there is no command ${invocation.command}`);
  return await run(context, invocation);
}

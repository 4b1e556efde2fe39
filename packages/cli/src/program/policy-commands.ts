import { type Command, Option } from 'commander';
import { type AddCommand, json, list } from './options.ts';

const CHECK_EXAMPLES = `
Examples:
  May this mission's agent reach a host? Its set-up?
  $ firecrew policy check api.example.com --mission 4k7q
  $ firecrew policy check registry.example.org:8443 --mission 4k7q --phase setup

  What does a file say, before a server uses it? No server is asked.
  $ firecrew policy check api.example.com --policy ./firecrew.policy.yaml --allow api.example.com

Exit codes: 0 allowed, 1 denied, 2 wrong usage or a policy that cannot be used. Nothing is run, looked up or dialled.`;

/** The commands that ask what missions may reach. */
export function addPolicy(program: Command, command: AddCommand): void {
  const policy = program.command('policy').description('ask what missions may reach, and what they did').exitOverride();
  command(policy, 'check <host[:port]>', 'say whether a host may be reached, by which rule, and what would allow it', 'policy check')
    .option('--mission <id>', 'of this mission, by the policy of its server')
    .addOption(new Option('--phase <part>', 'which part of a phase').choices(['setup', 'run']).default('run'))
    .option('--policy <file>', 'by this file, without a server (default: that of the settings)')
    .option('--backend <name>', 'for this backend (without --mission)', 'command')
    .addOption(list('--allow <host[:port]>', 'as if a mission asked for it (without --mission; repeatable)'))
    .addOption(json())
    .addHelpText('after', CHECK_EXAMPLES);
  command(policy, 'explain <id>', 'show what a mission reached and was refused, and what would allow it', 'policy explain')
    .addOption(json())
    .addHelpText('after', '\nExample:\n  $ firecrew policy explain 4k7q');
  command(policy, 'audit <id>', 'print the egress audit of a mission as JSON, one line for each', 'policy audit').addHelpText(
    'after',
    '\nExample:\n  $ firecrew policy audit 4k7q > egress.jsonl',
  );
}

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

const LEARN_EXAMPLES = `
Examples:
  $ firecrew policy learn 4k7q
  $ firecrew policy learn 4k7q --policy ./firecrew.policy.yaml --rule docs --out ./new.policy.yaml

Nothing is opened while it is learned: the mission ran under the policy it had. The diff is for a person to review; no policy is changed by it.`;

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
  command(policy, 'learn <id>', 'write what a mission was refused as the least change of a policy, to review', 'policy learn')
    .option('--policy <file>', 'the policy to change (default: that of the settings, else a new one)')
    .option('--rule <name>', 'named rule that gets the hosts, NAME-setup for those of the set-up', 'learned')
    .option('--out <file>', 'write the changed policy into this new file, too')
    .addOption(json())
    .addHelpText('after', LEARN_EXAMPLES);
  command(policy, 'audit <id>', 'print the egress audit of a mission as JSON, one line for each', 'policy audit').addHelpText(
    'after',
    '\nExample:\n  $ firecrew policy audit 4k7q > egress.jsonl',
  );
}

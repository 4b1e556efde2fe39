import { type Command, Option } from 'commander';
import { BUDGET_FLAGS } from '../seats/budget-flags.ts';
import { type AddCommand, json } from './options.ts';

const SEAT_EXAMPLES = `
A seat is a role's identity in the workspace. Its key may create missions of the seat and read them, and nothing else:
  $ firecrew seat link coder --turns 2
  $ firecrew seat mint coder
  $ firecrew run --seat coder --repo . --task "..." --agent-cmd "..."

A key in danger: revoke it, and what runs under it is ended. A key that is only old: rotate it, and what runs goes on.
  $ firecrew seat revoke coder
  $ firecrew seat rotate coder

What its turns use of model routes is counted, and can be bounded over all of them:
  $ firecrew seat link coder --day-tokens 2000000
  $ firecrew seat show coder

Keys lie encrypted in this home, or with "keyStore": "keychain" in the keychain of the system; FIRECREW_SEAT_KEY_<seat id> stands before them. The
server makes them, or the issuer that "seatIssuer" describes. No command prints one.
Exit codes: 0 done or nothing to do, 1 something failed or a role that was named has no seat, 2 wrong usage.`;

/** The commands of `firecrew seat`. */
export function addSeats(program: Command, command: AddCommand): void {
  const seat = program.command('seat').description('give roles an identity of their own, with keys that can be revoked').exitOverride();
  seat.addHelpText('after', SEAT_EXAMPLES);
  const add = (usage: string, text: string): Command => command(seat, usage, text, `seat ${usage.split(' ')[0] ?? ''}`);
  const dryRun = (): Option => new Option('--dry-run', 'say what would be done, and do nothing').default(false, 'off');
  const example = (text: string): string => `\nExample:\n  $ firecrew seat ${text}`;
  add('list', 'list seats, their turns and keys, and which key is stored here')
    .addOption(json())
    .addHelpText('after', example('list --json'));
  add('show <role>', 'show one seat: its budget, and what its newest turns were given and charged with')
    .addOption(json())
    .addHelpText('after', example('show coder'));
  const link = add('link <role>', 'make the seat of a role, or link it again').option(
    '--turns <n>',
    'turns that may run under it at once (default: as it is; 1 for a new seat)',
  );
  link.option('--lease <duration>', 'longest that one turn may run under it, or none (default: as it is; none for a new seat)');
  for (const [flags, text] of Object.values(BUDGET_FLAGS)) link.option(flags, `${text}; none takes the bound away (default: as it is)`);
  link.addOption(dryRun()).addOption(json()).addHelpText('after', example('link coder --turns 2 --day-tokens 2000000'));
  add('unlink <role>', 'revoke all keys of a seat and end what runs under it')
    .addOption(dryRun())
    .addOption(json())
    .addHelpText('after', example('unlink coder --dry-run'));
  add('mint [roles...]', 'make and store a key for seats that have none here (default: all that are linked)')
    .addOption(dryRun())
    .addOption(json())
    .addHelpText('after', example('mint coder writer'));
  add('rotate [roles...]', 'put a new key in the place of the stored one; what runs goes on')
    .addOption(dryRun())
    .addOption(json())
    .addHelpText('after', example('rotate coder'));
  add('revoke <roles...>', 'revoke the stored key on the server, end what runs under it, and forget it')
    .addOption(dryRun())
    .addOption(json())
    .addHelpText('after', example('revoke coder'));
  add('whoami [role]', "whom the token of this home stands for, or a role's stored key")
    .addOption(json())
    .addHelpText('after', example('whoami coder'));
}

import { Command, Option } from 'commander';
import { addBackends, addFleet } from './program/fleet-commands.ts';
import { type AddCommand, json, list } from './program/options.ts';
import { addPolicy } from './program/policy-commands.ts';
import { addSeats } from './program/seat-commands.ts';

/** One parsed call: which command, with which arguments and options. Nothing has been done yet. */
export interface Invocation {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly home: string | undefined;
}

const DESCRIPTION = `Runs crews of coding agents, each in its own microVM, and brings back verified work.

The first command starts what it needs on this machine: a server, a database and a node agent.`;

const EXAMPLES = `
Examples:
  $ firecrew run --repo . --task "Fix the failing date test" --check "npm test" --agent-cmd "my-agent"
  $ firecrew missions
  $ firecrew logs 4k7q --follow
  $ firecrew doctor

Exit codes: 0 completed, 1 failed, 2 wrong usage or another version, 3 cancelled, 4 could not be placed.
Ids may be given by their last characters when these are unique.`;

const RUN_EXAMPLES = `
Examples:
  One task on this repository; the result is a new branch in it, checked in a fresh sandbox:
  $ firecrew run --repo . --task "Add a --quiet flag" --check "npm test" --agent-cmd 'claude -p "$(cat $FIRECREW_TASK_FILE)"'

  An agent of your own; the script is sent along, and may reach one host:
  $ firecrew run --repo . --task-file TASK.md --agent-cmd ./my-agent.sh --allow api.example.com

  Dependencies from the registry in your own npm configuration:
  $ firecrew run --repo . --task "..." --agent-cmd "..." --setup-allow registry:npm

  Do not wait, and come back later:
  $ firecrew run --repo . --task "..." --agent-cmd "..." --no-wait
  $ firecrew logs ID --follow
  $ firecrew fetch ID --push origin

The agent's command is run by /bin/sh in the workspace. It finds its task in the file $FIRECREW_TASK_FILE, and from the second
round on what the check said in $FIRECREW_FEEDBACK_FILE. Nothing can be reached over the network unless it is allowed here.`;

/** The grammar of the command line. `onCall` gets each parsed call; a wrong one throws commander's error. */
export function buildProgram(version: string, onCall: (invocation: Invocation) => void): Command {
  const program = new Command('firecrew')
    .description(DESCRIPTION)
    .version(version, '-V, --version', 'print the version')
    .option('--home <dir>', 'folder of all state (else FIRECREW_HOME)')
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(add --help for the options and examples)')
    .exitOverride();
  const command = (parent: Command, usage: string, text: string, name = usage.split(' ')[0] ?? usage): Command => {
    const made = parent.command(usage).description(text).allowExcessArguments(false);
    // The last argument of an action is the command, the one before its options.
    made.action((...all: unknown[]) => {
      // A repeatable argument is a list of its own.
      const args = all
        .slice(0, -2)
        .flat()
        .filter((item): item is string => typeof item === 'string');
      const { home } = program.opts<{ home?: string }>();
      onCall({ command: name, args, options: made.opts(), home });
    });
    return made;
  };
  addServices(program, command);
  addRun(program, command);
  addMissions(program, command);
  addRecipes(program, command);
  addBackends(program, command);
  addSeats(program, command);
  addFleet(program, command);
  addImages(program, command);
  addPolicy(program, command);
  return program;
}

function addServices(program: Command, command: AddCommand): void {
  command(program, 'up', 'start server, database and node agent, and leave them running')
    .option('--listen <host:port>', 'address of the server (default: loopback, a free port)')
    .option('--database-url <url>', "PostgreSQL to use; own is the home's own")
    .option('--policy <file>', 'egress policy of this server (firecrew.policy.yaml)')
    .option('--driver-floor <driver>', 'weakest driver a mission may ask for: process, qemu, firecracker')
    .addOption(json())
    .addHelpText('after', '\nExamples:\n  $ firecrew up\n  $ firecrew up --listen 127.0.0.1:7070\n  $ firecrew up --json');
  command(program, 'down', 'stop node agent, server, database and supervisor')
    .option('--force', 'cancel missions that run, and stop', false)
    .addOption(json())
    .addHelpText('after', '\nExamples:\n  $ firecrew down\n  $ firecrew down --force');
  command(program, 'status', 'show what runs, without starting anything')
    .addOption(json())
    .addHelpText('after', '\nExamples:\n  $ firecrew status\n  $ firecrew status --json | jq .server.pid');
  command(program, 'doctor', 'check this machine, and name the command that mends each finding')
    .option('--vm-selftest', 'boot a VM with each driver of the settings, run a command in it, and see that it leaves nothing', false)
    .addOption(json())
    .addHelpText('after', '\nExamples:\n  $ firecrew doctor\n  $ firecrew doctor --vm-selftest');
  command(program, 'version', 'print the version of the command and of the running server').addOption(json());
  program.commands.at(-1)?.addHelpText('after', '\nExample:\n  $ firecrew version --json');
  command(program, 'supervise', 'keep the services of one home running (started by other commands)').configureHelp({});
  hide(program, 'supervise');
}

/** A command that people do not call is not in the list of help. */
function hide(program: Command, name: string): void {
  program.configureHelp({ visibleCommands: (shown) => shown.commands.filter((item) => item.name() !== name) });
}

function addRun(program: Command, command: AddCommand): void {
  command(program, 'run', 'run an agent on a task and bring back its verified work')
    .optionsGroup('What is done:')
    .option('--repo <path|url>', 'repository: a folder of this machine, or an https URL')
    .option('--no-repo', 'start from an empty folder')
    .option('--branch <name>', 'branch to start from (URL only; a folder starts from its HEAD)')
    .option('--task <text>', 'what the agent is to do')
    .option('--task-file <file>', 'the same from a file, - for standard input')
    .option('--title <text>', 'name of the mission (default: first line of the task)')
    .option('--check <command>', 'shell command that must exit 0 in a fresh sandbox')
    .option('--setup <command>', 'shell command before the agent and before each check (default: by the lock file)')
    .option('--no-setup', 'run no set-up')
    .addOption(list('--setup-layer <file>', 'keep what the set-up makes of this file, for later VMs (repeatable)'))
    .option('--allow-empty', 'accept that nothing was changed', false)
    .option('--recipe <name>', 'several phases in place of one (firecrew recipe list)')
    .addOption(list('--input <name=text>', 'further input of the recipe (repeatable)'))
    .optionsGroup('Who does it:')
    .option('--agent-cmd <command>', "the agent's shell command")
    .option('--backend <name>', 'what the agent runs as: its image and model route (firecrew backend list)')
    .option('--seat <role>', "work under the key of this role's seat (firecrew seat --help)")
    .addOption(list('--agent-file <file>', 'file to send along, found in $FIRECREW_AGENT_DIR (repeatable)'))
    .addOption(new Option('--driver <driver>', 'what isolates the agent').choices(['process', 'qemu', 'firecracker']))
    .option('--allow-unisolated', 'accept that nothing isolates the agent (also FIRECREW_ALLOW_UNISOLATED=1)', false)
    .option('--needs-model-route', 'run on nodes that have a model route for the agent, and wait for one', false)
    .optionsGroup('What may be reached:')
    .addOption(list('--allow <host[:port]>', 'host the agent and the check may reach, or rule:NAME of the policy (repeatable)'))
    .addOption(list('--setup-allow <host[:port]>', 'host for the set-up alone, rule:NAME, or registry:npm (repeatable)'))
    .addOption(list('--allow-address <host=address>', 'address of an allowed host that need not be public (repeatable)'))
    .option('--strict-policy', 'start nothing where the policy of the server leaves out any of it', false)
    .option('--learn', 'a learning run: all that the policy opens to those may be reached, see firecrew policy learn', false)
    .option('--learn-with-credentials', 'let a learning run have the model route, a seat, secrets, and a push after approval', false)
    .optionsGroup('What travels, and where the work goes:')
    .option('--require-clean', 'refuse uncommitted changes', false)
    .option('--unshallow', 'of a shallow clone, fetch the history it lacks from its remote (nothing is written into it)', false)
    .addOption(list('--include <path>', 'send this ignored file or folder too (repeatable)'))
    .addOption(list('--include-secret <path>', 'send this file though it looks like a secret (repeatable)'))
    .option('--push <remote>', 'push the new branch with your own credentials')
    .option('--push-dirty', 'push though the base holds uncommitted changes', false)
    .optionsGroup('How long, and how it is shown:')
    .option('--timeout <duration>', 'time for the agent, such as 30m or 1h30m')
    .option('--check-timeout <duration>', 'time for each check')
    .option('--setup-timeout <duration>', 'time for each set-up')
    .option('--no-wait', 'create the mission and return')
    .addOption(new Option('--json', 'print one event a line, and run.ended as the last one').default(false, 'off'))
    .addHelpText('after', RUN_EXAMPLES);
}

function addMissions(program: Command, command: AddCommand): void {
  const example = (text: string): string => `\nExample:\n  $ firecrew ${text}`;
  command(program, 'missions', 'list missions, newest first')
    .option('--limit <n>', 'how many', '20')
    .addOption(json())
    .addHelpText('after', example('missions --limit 50'));
  command(program, 'show <id>', 'show a mission: phases, attempts, what was delivered')
    .addOption(json())
    .addHelpText('after', example('show 4k7q'));
  command(program, 'logs <id>', 'print the output of the agents')
    .option('-f, --follow', 'go on until the mission has ended', false)
    .addOption(json())
    .addHelpText('after', example('logs 4k7q --follow'));
  command(program, 'events <id>', 'print what happened')
    .option('-f, --follow', 'go on until the mission has ended', false)
    .option('--after <seq>', 'begin behind this event', '0')
    .addOption(json())
    .addHelpText('after', example('events 4k7q --json'));
  command(program, 'cancel <id>', 'cancel a mission; what its agent did is collected')
    .addOption(json())
    .addHelpText('after', example('cancel 4k7q'));
  command(program, 'retry <id>', 'run a failed phase again')
    .option('--phase <id>', 'which one (default: the failed one)')
    .addOption(json())
    .addHelpText('after', example('retry 4k7q'));
  command(program, 'approve <id>', 'approve a delivery that changes protected paths')
    .option('--phase <id>', 'which one (default: the one that waits)')
    .addOption(json())
    .addHelpText('after', example('approve 4k7q'));
  command(program, 'fetch <id>', 'write the delivered branch into your repository')
    .option('--repo <path>', 'repository (default: the one it was started from)')
    .option('--push <remote>', 'push it with your own credentials')
    .option('--push-dirty', 'push though the base holds uncommitted changes', false)
    .addOption(json())
    .addHelpText('after', example('fetch 4k7q --push origin'));
  command(program, 'artifacts <id>', 'list the outputs of a mission')
    .option('--download <dir>', 'save them in this folder')
    .option('--archive <file>', 'save all of them in one tar, with their folders')
    .addOption(json())
    .addHelpText('after', `${example('artifacts 4k7q --download ./out')}\n  $ firecrew artifacts 4k7q --archive out.tar`);
}

function addRecipes(program: Command, command: AddCommand): void {
  const recipe = program.command('recipe').description('show recipes: phases that go together').exitOverride();
  command(recipe, 'list', 'list the recipes', 'recipe list').addOption(json());
  command(recipe, 'show <name>', 'show the inputs and phases of a recipe', 'recipe show')
    .addOption(json())
    .addHelpText('after', '\nExample:\n  $ firecrew recipe show test-first');
}

const IMAGE_EXAMPLES = `
What a microVM is made of, in the order it is needed once on a host (tools/install-vm-tools.sh installs what building takes):
  $ firecrew image payload
  $ firecrew image kernel --from linux-image-6.1.0-cloud-amd64.deb
  $ firecrew image build --from debian:bookworm --package git --package ca-certificates

  $ firecrew image list
  $ firecrew image build claude-code --recipe examples/images/claude-code.json

Images are kept by content: an id is the SHA-256 of all that an image is and says. Names lead to ids; "default" is the
image of missions that name none.`;

const BUILD_EXAMPLES = `
Examples:
  From a container image, without a container engine on this host:
  $ docker save my-tools:1 -o my-tools.tar && firecrew image build my-tools --from my-tools.tar
  $ firecrew image build my-tools --from ./layout --reference 1

  From a folder; all of it becomes root's:
  $ firecrew image build --from ./rootfs

  A suite of Debian from the network, with packages:
  $ firecrew image build --from debian:bookworm --package git

  By a recipe, with programs of npm:
  $ firecrew image build codex --recipe examples/images/codex.json

Nothing of the source is run or unpacked on this host. The same source gives the same image.`;

function addImages(program: Command, command: AddCommand): void {
  const image = program.command('image').description('make and keep what microVMs boot from').exitOverride();
  image.addHelpText('after', IMAGE_EXAMPLES);
  const add = (usage: string, text: string): Command => command(image, usage, text, `image ${usage.split(' ')[0] ?? ''}`);
  const example = (text: string): string => `\nExample:\n  $ firecrew image ${text}`;
  add('build [name]', 'make a root file system from a folder, a container image, a suite or a recipe')
    .option('--from <source>', 'folder, OCI layout, file of docker save, or suite such as debian:bookworm')
    .option('--recipe <file>', 'JSON that says all of it (examples/images)')
    .option('--reference <name>', 'which image of a layout or archive')
    .option('--keep-owners', 'take owners of a folder as they are', false)
    .addOption(list('--package <name>', 'package to add to a suite (repeatable)'))
    .option('--mirror <url>', 'where a suite comes from')
    .addOption(new Option('--arch <processor>', "whose programs (default: this host's)").choices(['amd64', 'arm64']))
    .addOption(json())
    .addHelpText('after', BUILD_EXAMPLES);
  add('kernel', 'make the kernel, its modules and the initrd')
    .requiredOption('--from <file>', 'package of a kernel (.deb), or a bzImage such as /boot/vmlinuz-6.1.0')
    .option('--modules <dir>', 'folder of modules for a bzImage (default: /lib/modules for one in /boot)')
    .option('--init <file>', "guest-init (default: the one of this firecrew's)")
    .addOption(json())
    .addHelpText('after', example('kernel --from linux-image-6.1.0-cloud-amd64.deb'));
  add('payload', 'make the disk with Node and the guest agent')
    .option('--node <file>', 'Node for the guest (default: the one that runs this)')
    .option('--agent <file>', 'guest agent in one file (default: the one of this firecrew)')
    .option('--level <n>', 'how hard to pack, 1 to 22 (default: 19, about a minute; 3 takes seconds)')
    .option('--out <dir>', 'write its files to this new folder instead, to build into an image of your own as /opt/firecrew')
    .addOption(json())
    .addHelpText('after', `${example('payload --level 3')}\n  $ firecrew image payload --out rootfs/opt/firecrew`);
  add('list', 'list images, kernels and payloads').addOption(json()).addHelpText('after', example('list --json'));
  add('verify [names...]', 'read all of them, or these, against their digests')
    .addOption(json())
    .addHelpText('after', example('verify default'));
  add('export <name>', 'write one as a file for another host')
    .requiredOption('-o, --output <file>', 'file to write; none is written over')
    .addOption(json())
    .addHelpText('after', example('export default -o default.tar'));
  add('import <file>', 'take one out of such a file')
    .option('--name <name>', 'name to give it')
    .option('--expect <id>', 'refuse any other than this')
    .addOption(json())
    .addHelpText('after', example('import default.tar --name default'));
  add('gc', 'remove what has no name and had none a grace ago')
    .option('--grace <duration>', 'how long it must have had no name (default: 24h)')
    .addOption(json())
    .addHelpText('after', '\nThe first call marks, a later one removes.\n\nExample:\n  $ firecrew image gc --grace 1h');
  add('remove <name>', 'remove one at once, by its name or id').addOption(json()).addHelpText('after', example('remove my-tools'));
}

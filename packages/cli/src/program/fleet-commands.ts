import type { Command } from 'commander';
import { type AddCommand, json } from './options.ts';

/** The commands that show what agents can run as. */
export function addBackends(program: Command, command: AddCommand): void {
  const backend = program.command('backend').description('show what agents can run as').exitOverride();
  command(backend, 'list', 'list the backends, and where each can run now', 'backend list').addOption(json());
  command(backend, 'show <name>', 'show the image, hosts and model route of a backend', 'backend show')
    .addOption(json())
    .addHelpText('after', '\nExample:\n  $ firecrew backend show claude-code');
}

/** The commands of the nodes of a server. */
export function addFleet(program: Command, command: AddCommand): void {
  command(program, 'fleet', 'show the nodes and their capacity').addOption(json()).addHelpText('after', '\nExample:\n  $ firecrew fleet');
  const node = program
    .command('node')
    .description('show what is on hosts, let them join a server, and take them out of use')
    .exitOverride();
  command(node, 'vms', 'list the VMs and sandboxes on the nodes', 'node vms').addOption(json());
  command(node, 'token', 'make a token with which one more host can join', 'node token').addOption(json());
  command(node, 'drain <id>', 'place nothing more on a node; what runs there goes on', 'node drain')
    .addOption(json())
    .addHelpText('after', '\nExample:\n  $ firecrew node drain host-7');
  command(node, 'undrain <id>', 'place on a node again', 'node undrain').addOption(json());
  command(node, 'join <url>', 'make this host a node of the server at URL', 'node join')
    .requiredOption('--token <token>', 'join token (on the server: firecrew node token)')
    .requiredOption('--name <name>', 'name of this host')
    .addOption(json())
    .addHelpText('after', '\nExample:\n  $ firecrew node join https://firecrew.example.com --token fct_... --name host-7');
}

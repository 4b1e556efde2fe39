// Entry point of the guest agent: started by guest-init in a VM, by the process driver in a sandbox.
import { messageOf } from '@firecrew/base';
import { readConfig } from './agent-config.ts';
import { closeInherited } from './close-inherited.ts';
import { GuestAgent } from './guest-agent.ts';

function note(text: string): void {
  process.stderr.write(`guest-agent: ${text}\n`);
}

async function main(): Promise<void> {
  closeInherited(process.argv[2] === '--config-fd' ? Number(process.argv[3]) : undefined);
  const { config, lifelineEnd } = await readConfig(process.argv.slice(2));
  const agent = new GuestAgent(config, note);
  // Without the host's process nobody would ever ask this agent to end.
  void lifelineEnd?.then(() => agent.close()).then(() => process.exit(0));
  await agent.run();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    note(messageOf(error));
    process.exit(1);
  },
);

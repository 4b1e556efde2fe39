import { messageOf } from '@firecrew/base';
import type { TurnEgress } from '@firecrew/protocol';
import type { AttemptContext } from './attempt-context.ts';

/** Characters of a reason in the timeline. */
const REASON_CHARS = 1000;

/** What of an attempt this concerns. */
type Gated = Pick<AttemptContext, 'gate'> & { readonly events: Pick<AttemptContext['events'], 'add'> };

/** Takes what the turn may reach from now on and tells it in the timeline; lists that cannot be used change nothing, and that is told, too. */
export function takeEgress({ gate, events }: Gated, egress: TurnEgress): void {
  try {
    const taken = gate.replace(egress);
    if (taken === 'same') return;
    const hosts = `${egress.setupAllow.length} entries for the set-up, ${egress.allow.length} for agent and check`;
    const message = `the egress policy changed: ${hosts}; open tunnels that were cut: ${taken.cut}`;
    events.add({ kind: 'notice', level: 'info', code: 'egress_policy_replaced', message });
  } catch (error) {
    const message = `a changed egress policy cannot be used, and the one before stays: ${messageOf(error)}`;
    events.add({ kind: 'notice', level: 'warning', code: 'egress_policy_refused', message: message.slice(0, REASON_CHARS) });
  }
}

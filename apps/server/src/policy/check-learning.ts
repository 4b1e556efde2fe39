import { CodedError } from '@firecrew/base';
import { formatAllowRule, type OperatorPolicy, POLICY_PARTS, type PolicyPart } from '@firecrew/egress-policy';
import type { CreateMission, MissionEventBody } from '@firecrew/protocol';
import type { PolicyDesk } from './policy-desk.ts';

/** Entries of a part that the notice of a learning run names. */
const MAX_NAMED = 20;

/** What of a mission a learning run is judged by. */
export interface LearningFacts {
  readonly learn: CreateMission['learn'];
  /** It is made with the key of a seat. */
  readonly ofSeat: boolean;
  /** Files of secrets that travel with its tree, by name. */
  readonly includedSecrets: readonly string[];
}

/**
 * Refuses a learning run that the operator's policy bounds nowhere or that could learn nothing (`learn_not_allowed`), and one that has credentials
 * which nobody asked to risk (`learn_with_credentials`). The model route is not refused: it is closed (`turn-spec.ts`).
 */
export function checkLearning({ policy, origin }: Pick<PolicyDesk, 'policy' | 'origin'>, facts: LearningFacts): void {
  const { learn, ofSeat, includedSecrets } = facts;
  if (learn === undefined) return;
  const unbounded = POLICY_PARTS.filter((part) => policy.learn[part] === 'not_allowed');
  if (unbounded.length > 0)
    throw new CodedError(
      'learn_not_allowed',
      `nothing bounds what a learning run may reach: ${origin.source} has no ceiling for ${unbounded.join(' and ')}`,
      {
        action: `Let the operator name what may be tried, in the policy file: ${unbounded.map((part) => `learn.${part}`).join(', ')} (an empty list for nothing more), or a ceiling.`,
      },
    );
  if (POLICY_PARTS.every((part) => openedTo(policy, part).length === 0))
    throw new CodedError('learn_not_allowed', `${origin.source} leaves nothing open that a learning run could try`, {
      action: 'Let the operator name what may be tried under `learn` of the policy file; under the preset locked nothing is.',
    });
  if (learn.withCredentials) return;
  const held = [
    ...(ofSeat ? ['the key of a seat'] : []),
    ...(includedSecrets.length === 0 ? [] : [`included secrets (${includedSecrets.slice(0, 5).join(', ')})`]),
  ];
  if (held.length > 0)
    throw new CodedError('learn_with_credentials', `a learning run reaches more than missions do, and would have ${held.join(' and ')}`, {
      action: 'Run it without them, or say --learn-with-credentials.',
    });
}

/** The first words of a learning run's timeline: that it is one, and what was open to it. */
export function learningNotice(
  { policy, origin }: Pick<PolicyDesk, 'policy' | 'origin'>,
  learn: CreateMission['learn'],
): MissionEventBody[] {
  if (learn === undefined) return [];
  const open = POLICY_PARTS.map((part) => {
    const entries = openedTo(policy, part);
    const more = entries.length - MAX_NAMED;
    return `${part}: ${entries.slice(0, MAX_NAMED).join(', ') || 'nothing more'}${more > 0 ? ` and ${more} more` : ''}`;
  });
  const held = learn.withCredentials ? 'with the credentials that it has' : 'without model route';
  const message = `this is a learning run, ${held}: open to it by ${origin.source} (${origin.digest.slice(0, 12)}) is, without asking, for ${open.join('; for ')}`;
  return [{ kind: 'notice', level: 'warning', code: 'learning_run', message }];
}

function openedTo(policy: OperatorPolicy, part: PolicyPart): string[] {
  const open = policy.learn[part];
  return open === 'not_allowed' ? [] : open.map(formatAllowRule);
}

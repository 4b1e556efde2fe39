import { CodedError } from '@firecrew/base';
import { type AskedBeyond, askedBeyond } from '@firecrew/egress-policy';
import type { MissionEventBody, PolicyWarning } from '@firecrew/protocol';
import type { PolicyDesk } from './policy-desk.ts';
import { type Asked, checkAsked, reachRequestOf, turnEgress } from './turn-egress.ts';

/** Warnings that one error names. */
const MAX_TOLD = 5;

/**
 * Judges what a mission asks for, before anything of it is stored, and gives what the policy leaves out. Throws `allow_list_invalid`,
 * `policy_rule_unknown`, `policy_too_large`, and for a mission that is strict `policy_above_ceiling`. `missionId` is that of a mission that is being made.
 */
export function judgeAsked(desk: Pick<PolicyDesk, 'policy' | 'origin' | 'backends'>, spec: Asked, missionId?: string): PolicyWarning[] {
  const { policy, origin } = desk;
  checkAsked(desk, spec);
  turnEgress(desk, spec);
  const warnings = askedBeyond(policy, reachRequestOf(desk, spec)).map((beyond) => warningOf(beyond, origin.source, missionId));
  if (spec.egress.strict === true && warnings.length > 0) {
    const told = warnings.slice(0, MAX_TOLD).map(({ message }) => message);
    if (warnings.length > told.length) told.push(`and ${warnings.length - told.length} more`);
    throw new CodedError('policy_above_ceiling', told.join('; '), { action: warnings[0]?.action ?? '' });
  }
  return warnings;
}

/** Warnings as events of the mission's timeline. */
export function noticesOf(warnings: readonly PolicyWarning[]): MissionEventBody[] {
  return warnings.map((warning) => {
    const { code, message, action } = warning;
    return { kind: 'notice', level: 'warning', code, message: `${message}. ${action}`, warning };
  });
}

function warningOf(
  { part, origin, entry, leaves, bound, preset }: AskedBeyond,
  source: string,
  missionId: string | undefined,
): PolicyWarning {
  const who = part === 'setup' ? 'the set-up' : 'the agent and its check';
  const by = bound === 'ceiling' ? `the ceiling of ${source}` : `the preset ${preset} of ${source}`;
  const what = origin === 'mission' ? entry : `${entry} (${origin})`;
  const common = { part, origin, entry, leaves: [...leaves], bound };
  const wanted = bound === 'ceiling' ? `raise ceiling.${part} by ${entry}` : `name ${entry} for ${part} in a rule`;
  const target = entry.replace(/^\./, '').replace(/\/tcp$/, '');
  const why =
    missionId === undefined
      ? ''
      : ` Why: firecrew policy check ${target} --mission ${missionId}${part === 'setup' ? ' --phase setup' : ''}`;
  const action = `Ask the operator of this server to ${wanted}, or leave it out.${why}`;
  if (leaves.length === 0)
    return { ...common, code: 'policy_above_ceiling', message: `${who} will not reach ${what}: it is above ${by}`, action };
  return { ...common, code: 'policy_narrowed', message: `of ${what} ${who} will reach ${leaves.join(', ')} alone, by ${by}`, action };
}

import { DEFAULT_SEAT_TURNS, MAX_SEAT_TURNS, type SeatBudgetChange, type SeatView, seatRoleSchema } from '@firecrew/protocol';
import { EXIT, UsageError } from '../exit-codes.ts';
import { parseDuration } from '../run/parse-duration.ts';
import { type BudgetTexts, readBudget } from '../seats/seat-budget.ts';
import { PAIRING_ROLE } from '../seats/seat-desk.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';

/** What `link` is told. */
export interface LinkOptions {
  readonly turns: string | undefined;
  readonly lease: string | undefined;
  readonly budget: BudgetTexts;
  readonly dryRun: boolean;
  readonly json: boolean;
}

/** What of a seat is to be set; what is absent stays. */
interface LinkWish {
  readonly maxTurns?: number;
  readonly leaseMs?: number | null;
  readonly budget?: SeatBudgetChange;
}

/** `firecrew seat link ROLE` */
export async function seatLinkCommand(context: CommandContext, role: string, options: LinkOptions): Promise<number> {
  demandRole(role);
  const [maxTurns, leaseMs, budget] = [readTurns(options.turns), readLease(options.lease), readBudget(options.budget)];
  const wish: LinkWish = {
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(budget === undefined ? {} : { budget }),
  };
  return await withServer(context, async ({ client }) => {
    if (options.dryRun) {
      const seat = (await client.seats()).find((item) => item.role === role);
      const plan = planLink(seat, wish);
      if (options.json) context.out.line(JSON.stringify({ role, dryRun: true, ...plan }));
      else context.out.line(`${role}: ${describeLink(plan)} (dry run)`);
      return EXIT.completed;
    }
    const seat = await client.linkSeat(role, wish);
    if (options.json) context.out.line(JSON.stringify(seat));
    else {
      context.out.line(`seat ${seat.id} is linked for the role ${role}: ${turnsText(seat.maxTurns)}`);
      if (seat.keys.length === 0) context.out.note(`it has no key yet: firecrew seat mint ${role}`);
    }
    return EXIT.completed;
  });
}

/** What linking would do: the seat is `made`, `linked` again, `changed`, or stays as it is (`same`). */
interface LinkPlan extends LinkWish {
  readonly would: 'made' | 'linked' | 'changed' | 'same';
  readonly maxTurns: number;
}

/** What linking would do to a seat, or to none. */
export function planLink(seat: SeatView | undefined, wish: LinkWish): LinkPlan {
  const plan = { ...wish, maxTurns: wish.maxTurns ?? seat?.maxTurns ?? DEFAULT_SEAT_TURNS };
  if (seat === undefined) return { would: 'made', ...plan };
  if (!seat.linked) return { would: 'linked', ...plan };
  const bounds = new Map(Object.entries(seat.budget ?? {}));
  const differs =
    seat.maxTurns !== plan.maxTurns ||
    (wish.leaseMs !== undefined && (seat.leaseMs ?? null) !== wish.leaseMs) ||
    Object.entries(wish.budget ?? {}).some(([name, value]) => (bounds.get(name) ?? null) !== value);
  return { would: differs ? 'changed' : 'same', ...plan };
}

function describeLink({ would, maxTurns, leaseMs, budget = {} }: LinkPlan): string {
  const lease = leaseMs === undefined ? [] : [leaseMs === null ? 'leases without a term' : `leases of ${leaseMs / 1_000} s`];
  const bounds = Object.entries(budget).map(([name, value]) => `${name} ${value ?? 'none'}`);
  const what = [turnsText(maxTurns), ...lease, ...bounds].join(', ');
  if (would === 'same') return `nothing would change: it is linked, with ${what}`;
  if (would === 'made') return `a seat would be made, with ${what}`;
  return `the seat would be ${would === 'linked' ? 'linked again' : 'changed'}, with ${what}`;
}

function turnsText(turns: number): string {
  return `${turns} ${turns === 1 ? 'turn' : 'turns'} at once`;
}

function demandRole(role: string): void {
  if (role === PAIRING_ROLE)
    throw new UsageError('usage_wrong', `the role ${PAIRING_ROLE} is interactive and always works under the workspace's key`, { id: role });
  if (!seatRoleSchema.safeParse(role).success)
    throw new UsageError('usage_wrong', `${JSON.stringify(role.slice(0, 60))} is no name of a role`, {
      id: role.slice(0, 60),
      action: 'Use lower-case letters, digits and dashes, at most 32, a letter first.',
    });
}

function readTurns(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const turns = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (turns >= 1 && turns <= MAX_SEAT_TURNS) return turns;
  throw new UsageError('usage_wrong', `--turns ${text.slice(0, 20)} is not a number from 1 to ${MAX_SEAT_TURNS}`, {
    action: `Leave it out for ${DEFAULT_SEAT_TURNS}.`,
  });
}

function readLease(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  const term = text === 'none' ? null : parseDuration(text);
  if (term !== undefined) return term;
  throw new UsageError('usage_wrong', `--lease ${text.slice(0, 20)} is no duration of at most 7 days, and not none`, {
    action: 'Write it as 90s, 30m or 2h; none leaves the time to the turn.',
  });
}

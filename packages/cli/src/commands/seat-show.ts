import { EXIT, UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderAttempts, renderUse } from '../seats/seat-budget.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';

/** `firecrew seat show ROLE` */
export async function seatShowCommand(context: CommandContext, role: string, json: boolean): Promise<number> {
  return await withServer(context, async ({ client }) => {
    const found = (await client.seats()).find((item) => item.role === role);
    if (found === undefined)
      throw new UsageError('usage_wrong', `there is no seat of the role ${cleanLine(role, 40)}`, {
        id: role.slice(0, 60),
        action: 'List seats with: firecrew seat list',
      });
    const { seat, attempts } = await client.seat(found.id);
    if (json) context.out.line(JSON.stringify({ seat, attempts }));
    else {
      context.out.line(`${seat.role} (${seat.id}) is ${seat.linked ? 'linked' : 'unlinked'}: ${seat.turns} of ${seat.maxTurns} turns run`);
      const use = renderUse(seat);
      context.out.line(`used: ${use === '' ? 'nothing, without a bound' : use}`);
      for (const line of renderAttempts(attempts)) context.out.line(line);
    }
    return EXIT.completed;
  });
}

import { missionIdSchema } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { UsageError } from '../exit-codes.ts';

/** Missions that are looked at for an id given by its last characters. */
const LOOK_AT = 500;
/** Fewest characters of an id. */
export const ID_TAIL_MIN_CHARS = 3;

/** The id whose last characters are `text`. Throws `usage_wrong` for none or several. */
export function matchId(text: string, ids: readonly string[]): string {
  const wanted = text.toLowerCase();
  if (wanted.length < ID_TAIL_MIN_CHARS)
    throw new UsageError('usage_wrong', `${JSON.stringify(text)} is too short for an id`, {
      action: `Give at least its last ${ID_TAIL_MIN_CHARS} characters.`,
    });
  const found = ids.filter((id) => id === wanted || id.endsWith(wanted));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (found.length === 0)
    throw new UsageError('usage_wrong', `there is no mission ${JSON.stringify(text)}`, {
      id: text,
      action: 'List them with: firecrew missions',
    });
  throw new UsageError('usage_wrong', `${JSON.stringify(text)} is the end of ${found.length} ids: ${found.slice(0, 5).join(', ')}`, {
    action: 'Give more of it.',
  });
}

/** The full id of a mission that is given whole or by its last characters. */
export async function findMission(client: FirecrewClient, text: string): Promise<string> {
  const whole = missionIdSchema.safeParse(text);
  if (whole.success) return whole.data;
  return matchId(
    text,
    (await client.listMissions({ limit: LOOK_AT })).map((mission) => mission.id),
  );
}

import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { until } from './support/until.ts';

const BODY = JSON.stringify({ model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
const call = `curl -sS --noproxy '*' -H 'content-type: application/json' -d '${BODY}' "$FIRECREW_MODEL_URL/v1/messages"`;
const missing = await withoutIsolation();

describe.skipIf(missing !== '')(`a seat with a budget${missing}`, () => {
  let installation: Installation;
  let upstream: ModelUpstream;
  const credentialFile = join(tmpdir(), `fc-budget-${randomBytes(6).toString('hex')}`);
  beforeAll(async () => {
    await writeCredential(credentialFile, 'sk-test-0123456789abcdef0123456789\n');
    upstream = await ModelUpstream.start();
    upstream.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ type: 'message', usage: { input_tokens: 1_400, output_tokens: 20 } }));
    };
    const route = {
      format: 'anthropic_messages',
      upstream: upstream.url,
      caFile: UPSTREAM_CA,
      credential: { file: credentialFile },
    } as const;
    installation = await Installation.start({ bubblewrap: 'auto', node: { modelRoutes: { command: { ...route, outputTokens: 100 } } } });
  });
  afterAll(async () => {
    await installation.stop();
    await upstream.stop();
    await rm(credentialFile, { force: true });
  });

  it('ends the turn that uses it up, is charged with what that used, and holds the next one back until it is made larger', async () => {
    const { client } = installation;
    const seat = await client.linkSeat('coder', { budget: { dayTokens: 3_000 } });
    const asSeat = installation.clientOf((await client.mintSeatKey(seat.id, 'a test')).key);
    const create = async (command: string) =>
      (
        await asSeat.createMission({
          title: 'Spend',
          repository: { kind: 'none' },
          phases: [{ kind: 'research', task: 'spend', allowEmpty: true }],
          agent: { command },
          allowUnisolated: true,
        })
      ).id;
    const first = await create(`for n in 1 2 3 4 5 6; do ${call}; done; sleep 1000`);
    expect((await installation.ended(first)).end).toMatchObject({ missionState: 'failed', outcome: { kind: 'budget_exceeded' } });
    expect(upstream.requests).toHaveLength(2);
    const { seat: spent, attempts } = await client.seat(seat.id);
    expect(spent.use).toMatchObject({ day: { tokens: 2_840 }, held: { tokens: 0 }, attempts: 1 });
    expect(attempts[0]).toMatchObject({ outcome: 'budget_exceeded', grant: { tokens: 3_000, money: null }, charge: { tokens: 2_840 } });

    const second = await create(`${call} && echo enough`);
    await until(
      'a turn that is held back',
      async () => (await client.mission(second)).waiting?.startsWith('seat_budget_reached: ') === true,
    );
    await client.linkSeat('coder', { budget: { dayTokens: 9_000 } });
    expect((await installation.ended(second)).end.missionState).toBe('completed');
    expect((await client.seat(seat.id)).seat.use).toMatchObject({ day: { tokens: 4_260 }, attempts: 2 });
  });
});

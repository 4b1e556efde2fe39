import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EgressLine, MissionEvent } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { policyCheckCommand, readTarget, renderExplanation, renderVerdict } from '../src/commands/policy.ts';
import { exitCodeOf } from '../src/exit-codes.ts';
import type { Output } from '../src/render/output.ts';
import { AuditRecords } from '../src/run/audit-records.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-policy-'));
  await writeFile(join(folder, 'p.yaml'), 'version: 1\npreset: install\nbackends: { command: { run: [api.example] } }\n');
  await writeFile(join(folder, 'bad.yaml'), 'version: 1\nceilng: {}\n');
});
afterAll(async () => rm(folder, { recursive: true, force: true }));

/** Asks without a server, and gives the exit code with what was printed. */
async function check(target: string, options: Record<string, unknown> = {}, env: Record<string, string> = {}) {
  const lines: string[] = [];
  // cast: a check prints lines and notes, and nothing else of an output
  const out = { line: (text: string) => void lines.push(text), note: () => undefined } as unknown as Output;
  const context = { env, cwd: folder, out, homeFlag: join(folder, 'home'), version: '0' };
  try {
    const code = await policyCheckCommand(context, target, options);
    return [code, ...lines];
  } catch (error) {
    return [exitCodeOf(error), (error as { code?: string }).code ?? 'no code'];
  }
}

describe('policy check without a server', () => {
  it.each([
    ['api.example', {}, [0, 'allowed  api.example:443  run  listed', 'rule    api.example (backend command)']],
    [
      'other.example',
      {},
      [
        1,
        'denied  other.example:443  run  not_listed',
        'to allow it: the operator would have to name other.example, and the mission to ask for it (--allow)',
      ],
    ],
    [
      'other.example',
      { phase: 'setup' },
      [1, 'denied  other.example:443  setup  empty_list', 'to allow it: the mission need only ask: --setup-allow other.example'],
    ],
    [
      'other.example',
      { phase: 'setup', allow: ['.example.org', '.other.example'] },
      [0, 'allowed  other.example:443  setup  listed', 'rule    .other.example (mission)'],
    ],
    ['[::1]', {}, [1, 'denied  [::1]:443  run  ip_literal']],
  ])('%s %j ends with %j', async (target, options, expected) => {
    const found = await check(target, { policy: 'p.yaml', ...options });
    expect(found).toEqual([...expected, `policy  ${join(folder, 'p.yaml')}`]);
  });

  it('takes the file, or the ceiling, of the settings where none is named', async () => {
    expect((await check('api.example', {}, { FIRECREW_POLICY_FILE: join(folder, 'p.yaml') }))[0]).toBe(0);
    expect(await check('api.example', { allow: ['api.example'] }, { FIRECREW_CEILING: 'b.example' })).toEqual([
      1,
      'denied  api.example:443  run  above_ceiling',
      'to allow it: the operator would have to raise the ceiling: api.example',
      'policy  settings',
    ]);
    expect((await check('api.example', { allow: ['api.example'] }))[0]).toBe(0);
  });

  it('gives programs one line of JSON', async () => {
    const [code, text] = await check('other.example:8443', { policy: 'p.yaml', json: true });
    expect(code).toBe(1);
    expect(JSON.parse(String(text))).toMatchObject({ verdict: 'denied', host: 'other.example', port: 8443, part: 'run' });
  });

  it.each([
    ['a policy that cannot be used', 'a.example', { policy: 'bad.yaml' }, 'policy_invalid'],
    ['a policy that is not there', 'a.example', { policy: 'absent.yaml' }, 'policy_unreadable'],
    ['a port that is none', 'a.example:0', { policy: 'p.yaml' }, 'usage_wrong'],
    ['a URL', 'https://a.example', { policy: 'p.yaml' }, 'usage_wrong'],
    ['a backend that is none', 'a.example', { policy: 'p.yaml', backend: 'none' }, 'backend_unknown'],
    ['an entry that means nothing', 'a.example', { policy: 'p.yaml', allow: ['rule:absent'] }, 'usage_wrong'],
    ['a mission and a file', 'a.example', { policy: 'p.yaml', mission: 'abcd' }, 'usage_wrong'],
  ])('ends with 2 for %s', async (_what, target, options, code) => {
    expect(await check(target, options)).toEqual([2, code]);
  });
});

describe('a target', () => {
  it.each([
    ['a.example', { host: 'a.example', port: 443 }],
    ['a.example:8443', { host: 'a.example', port: 8443 }],
    ['[2001:db8::1]:80', { host: '[2001:db8::1]', port: 80 }],
  ])('%s is %j', (text, expected) => {
    expect(readTarget(text)).toEqual(expected);
  });
});

describe('the audit of a mission', () => {
  const place = { phaseId: 'phs_0123456789abcdef', turnId: 'trn_0123456789abcdef', attempt: 2 };
  const seat = { id: 'seat_0123456789abcdef', role: 'coder', keyId: 'tok_0123456789abcdef' };
  const attempt = { turnId: place.turnId, attempt: 2, runId: 'run_0123456789abcdef', nodeId: 'nod_0123456789abcdef' };
  const owner = { id: 'msn_0123456789abcdef', seat, phases: [{ attempts: [attempt] }] };
  const none = { address: null, rule: null, bytesIn: null, bytesOut: null, lookupMs: null, connectMs: null, durationMs: null };
  const told = (seq: number, line: Partial<EgressLine>): MissionEvent => ({
    seq,
    at: `2026-01-01T00:00:0${seq}.000Z`,
    body: {
      kind: 'turn.event',
      ...place,
      seq,
      body: {
        kind: 'egress',
        line: {
          event: 'open',
          connection: 1,
          purpose: 'agent',
          host: 'a.example',
          port: 443,
          verdict: 'allowed',
          reason: 'listed',
          ...none,
          ...line,
        },
      },
    },
  });

  it('is one record for each connection, with mission, run, turn, attempt, seat and node, and all that its lines tell', () => {
    const records = new AuditRecords();
    const open = { address: '203.0.113.7', rule: '.example', lookupMs: 1, connectMs: 2 };
    expect(records.add(told(1, open), owner)).toBeUndefined();
    expect(
      records.add(told(2, { event: 'end', reason: 'guest_closed', rule: '.example', bytesIn: 5, bytesOut: 6, durationMs: 7 }), owner),
    ).toEqual({
      event: 'end',
      seq: 2,
      at: '2026-01-01T00:00:02.000Z',
      openedAt: '2026-01-01T00:00:01.000Z',
      missionId: owner.id,
      runId: attempt.runId,
      ...place,
      nodeId: attempt.nodeId,
      seat,
      connection: 1,
      purpose: 'agent',
      host: 'a.example',
      port: 443,
      address: '203.0.113.7',
      rule: '.example',
      verdict: 'allowed',
      reason: 'guest_closed',
      bytesIn: 5,
      bytesOut: 6,
      lookupMs: 1,
      connectMs: 2,
      durationMs: 7,
    });
    expect(records.rest()).toEqual([]);
  });

  it('has refusals at once, tunnels that have not ended at the end, and no other event', () => {
    const records = new AuditRecords();
    expect(records.add({ seq: 1, at: '2026-01-01T00:00:01.000Z', body: { kind: 'mission.started' } }, owner)).toBeUndefined();
    expect(
      records.add(told(2, { event: 'refused', verdict: 'denied', reason: 'not_listed' }), { ...owner, seat: null, phases: [] }),
    ).toMatchObject({
      event: 'refused',
      reason: 'not_listed',
      openedAt: null,
      seat: null,
      runId: null,
      nodeId: null,
    });
    records.add(told(3, { connection: 7 }), owner);
    expect(records.add(told(4, { connection: 7 }), owner)).toMatchObject({ seq: 3, event: 'open' });
    expect(records.rest()).toMatchObject([{ event: 'open', seq: 4, connection: 7, bytesIn: null }]);
  });
});

describe('an explanation', () => {
  const policy = { source: '/etc/p.yaml', digest: 'a'.repeat(64) };
  it('says that nothing was reached and refused', () => {
    const lines = renderExplanation({ missionId: 'msn_0123456789abcdef', policy, reached: [], refused: [], truncated: false });
    expect(lines).toEqual(['nothing was reached', '', 'nothing was refused', '', 'by the policy of now: /etc/p.yaml (aaaaaaaaaaaa)']);
  });

  it('names each refusal with what would allow it', () => {
    const row = {
      purpose: 'setup',
      host: 'a.example',
      port: 443,
      reason: 'not_listed',
      rule: null,
      connections: 3,
      allowedNow: false,
    } as const;
    const lines = renderExplanation({
      missionId: 'msn_0123456789abcdef',
      policy,
      reached: [{ purpose: 'agent', host: 'b.example', port: 443, rule: '.example', connections: 1, bytesIn: 2, bytesOut: 3 }],
      refused: [
        { ...row, remedy: { by: 'mission', entry: 'rule:packages' } },
        { ...row, remedy: null, allowedNow: true },
        { ...row, host: null, port: null, remedy: null },
        { ...row, remedy: null, reason: 'turn_bytes_spent', rule: 'budget turn: 5 bytes' },
      ],
      truncated: true,
    }).join('\n');
    expect(lines).toMatch(/b\.example:443 +agent +1 +2 +3 +\.example/);
    expect(lines).toMatch(/a\.example:443 +setup +3 +not_listed +the mission need only ask: --setup-allow rule:packages/);
    expect(lines).toMatch(/allowed by the policy of now/);
    expect(lines).toMatch(/\(no name\) +setup/);
    expect(lines).toMatch(/turn_bytes_spent +budgets of the policy: budget turn: 5 bytes/);
    expect(lines).toMatch(/there is more than is shown/);
  });

  it('has the tunnels that are open now, the whole in numbers, and says that a run was a learning one', () => {
    const lines = renderExplanation({
      missionId: 'msn_0123456789abcdef',
      policy,
      learning: true,
      reached: [],
      open: [
        {
          purpose: 'agent',
          host: 'a.example',
          port: 443,
          rule: '.example',
          address: '203.0.113.7',
          turnId: 'trn_0123456789abcdef',
          attempt: 1,
          connection: 3,
          since: '2026-01-01T10:20:30.000Z',
          bytesIn: null,
          bytesOut: null,
        },
      ],
      refused: [],
      totals: { tunnels: 4, refusals: 2, bytesIn: 10, bytesOut: 20 },
      truncated: false,
    }).join('\n');
    expect(lines).toMatch(/^a learning run: it reached more than missions may/);
    expect(lines).toMatch(/a\.example:443 +agent +203\.0\.113\.7 +2026-01-01 10:20:30 +- +- +\.example/);
    expect(lines).toMatch(/in all 4 tunnels, 2 refusals, 10 bytes in, 20 bytes out/);
  });

  it('of a verdict tells the nearest rule', () => {
    const verdict = {
      verdict: 'denied',
      reason: 'port_not_listed',
      part: 'run',
      host: 'a',
      port: 1,
      rule: 'a',
      origin: null,
      remedy: null,
      policy: 'p',
    } as const;
    expect(renderVerdict(verdict, 'a')).toEqual(['denied  a:1  run  port_not_listed', 'nearest a', 'policy  p']);
  });
});

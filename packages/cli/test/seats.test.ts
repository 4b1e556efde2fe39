// Seats with the real command, server and key store.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FirecrewApiError, FirecrewClient } from '@firecrew/sdk';
import { issuerCases } from '@firecrew/seat-keys/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitOf, renderSeats } from '../src/commands/seats.ts';
import { HttpIssuer } from '../src/issuers/http-issuer.ts';
import { parseIssuer } from '../src/issuers/issuer-file.ts';
import { readBudget, renderUse } from '../src/seats/seat-budget.ts';
import { targetsOf } from '../src/seats/seat-desk.ts';
import { ServerIssuer } from '../src/seats/server-issuer.ts';
import { TestHome } from './command.ts';

const seat = (role: string, linked = true) => ({
  id: `set_${role}`,
  role,
  linked,
  maxTurns: 2,
  turns: 1,
  keys: [],
  createdAt: '2026-01-01T00:00:00.000Z',
});

describe('which seats a command is about', () => {
  const seats = [seat('coder'), seat('old', false)];
  it.each([
    ['all that are linked', [], false, [{ role: 'coder', seatId: 'set_coder' }]],
    ['all, where keys are revoked', [], true, [seat('coder'), seat('old')].map(({ role, id }) => ({ role, seatId: id }))],
    ['those that are named, once each', ['coder', 'coder'], false, [{ role: 'coder', seatId: 'set_coder' }]],
    ['none for a role without a seat', ['nobody'], false, [{ role: 'nobody' }]],
    ['none for a seat that is not linked', ['old'], false, [{ role: 'old' }]],
  ])('%s', (_what, roles, unlinkedToo, targets) => {
    expect(targetsOf(seats, roles, unlinkedToo)).toEqual(targets);
  });

  it.each([
    ['minted', 0],
    ['already_stored', 0],
    ['not_stored', 0],
    ['no_seat', 1],
    ['forbidden', 1],
    ['failed', 1],
  ])('%s ends with %d where the role was named', (outcome, code) => {
    expect(exitOf([{ role: 'a', outcome }], ['a'])).toBe(code);
  });

  it('a role without a seat that nobody named is no failure', () => expect(exitOf([{ role: 'a', outcome: 'no_seat' }], [])).toBe(0));

  it('are shown with their turns, or with the way to the first one', () => {
    expect(renderSeats([seat('coder')], ['no']).join('\n')).toMatch(/coder .*linked .*1 of 2 .*no/);
    expect(renderSeats([], [])).toEqual(['no seats yet; link one with: firecrew seat link ROLE']);
  });
});

describe('the budget of a seat', () => {
  const use = { day: { tokens: 5, money: 0.5 }, total: { tokens: 70, money: 1 }, held: { tokens: 0, money: 0 }, attempts: 2 };
  const none = { turnTokens: null, dayTokens: null, totalTokens: null, turnMoney: null, dayMoney: null, totalMoney: null };
  it.each([
    ['nothing of a server of before budgets', {}, ''],
    ['what was used where nothing is bounded', { use, budget: none }, '70 tokens, 1 in money'],
    [
      'each bound with what was used of it',
      { use, budget: { ...none, dayTokens: 9, totalMoney: 3 } },
      '5 of 9 tokens today, 1 of 3 in money in all',
    ],
    [
      'what is held',
      { use: { ...use, held: { tokens: 4, money: 0.25 } }, budget: { ...none, dayTokens: 9 } },
      '5 of 9 tokens today, 4 tokens held, 0.25 in money held',
    ],
  ])('shows %s', (_what, seatUse, text) => expect(renderUse(seatUse)).toBe(text));

  it.each([
    ['nothing', {}, undefined],
    ['a bound', { dayTokens: '1000' }, { dayTokens: 1000 }],
    ['none, which takes it away', { totalMoney: 'none', turnMoney: '0.5' }, { totalMoney: null, turnMoney: 0.5 }],
  ])('is read from %s', (_what, texts, change) => expect(readBudget(texts)).toEqual(change));

  it.each([{ dayTokens: '999' }, { dayTokens: '1000.5' }, { dayMoney: '0' }, { dayMoney: '-1' }, { dayMoney: '1e3' }, { turnTokens: '' }])(
    'is refused as %j',
    (texts) => expect(() => readBudget(texts)).toThrow(expect.objectContaining({ code: 'usage_wrong' })),
  );
});

describe('the issuer, by what the server answers', () => {
  const failing = (status: number | null) => {
    const fail = async (): Promise<never> => {
      throw new FirecrewApiError({ code: 'x', message: 'x', status });
    };
    return new ServerIssuer({ mintSeatKey: fail, revokeSeatKey: fail, whoami: fail });
  };
  it.each([
    [403, 403],
    [404, 404],
    [500, 500],
    [null, 'unreachable'],
    [200, 'unreachable'],
  ])('%s is %s', async (status, wanted) => {
    const issuer = failing(status);
    expect(await issuer.mint({ seatId: 's', role: 'r', name: 'n' })).toEqual({ status: wanted });
    expect(await issuer.revoke('k')).toEqual({ status: wanted });
    expect(await issuer.askMintRight()).toEqual({ status: wanted });
  });
});

describe('seats with a server', () => {
  const home = new TestHome();
  const parse = (text: string): unknown => JSON.parse(text);
  const outcomes = (text: string) => (parse(text) as { outcomes: { outcome: string; detail?: string }[] }).outcomes;
  const runAs = (role: string) =>
    home.run(
      'run',
      '--seat',
      role,
      '--no-repo',
      '--task',
      'x',
      '--allow-empty',
      '--no-setup',
      '--agent-cmd',
      'echo done > done.txt',
      '--no-wait',
    );
  const seatBudget = async (role: string) => {
    const found = (await client.seats()).find((item) => item.role === role);
    if (found === undefined) throw new Error(`no seat of the role ${role}`);
    return found;
  };
  const shown: string[] = [];
  const run = async (...args: string[]) => {
    const ended = await home.run(...args);
    shown.push(ended.stdout, ended.stderr);
    return ended;
  };
  let client: FirecrewClient;
  beforeAll(async () => {
    await home.run('up');
    const { url } = await home.status();
    client = new FirecrewClient({ url: url ?? '', token: readFileSync(join(home.root, 'run', 'token'), 'utf8').trim() });
  });
  afterAll(() => home.remove());

  it.each(issuerCases)('the issuer: $name', async ({ run: keeps }) => {
    const { id } = await client.linkSeat('issuer-test');
    const issuer = new ServerIssuer(client);
    await keeps({
      mint: (wish) => issuer.mint({ ...wish, seatId: id }),
      revoke: (keyId) => issuer.revoke(keyId),
      askMintRight: () => issuer.askMintRight(),
    });
    await client.unlinkSeat(id);
  });

  it('go from link over mint, use and rotation to the end, and print no key', async () => {
    expect((await run('seat', 'mint', 'coder')).code).toBe(1);
    expect((await run('seat', 'link', 'coder', '--turns', '2')).stdout).toContain('2 turns at once');
    expect(outcomes((await run('seat', 'mint', 'coder', '--dry-run', '--json')).stdout)).toEqual([
      { role: 'coder', outcome: 'minted', detail: 'dry run' },
    ]);
    const [before] = (await client.seats()).filter(({ role }) => role === 'coder');
    expect(before?.keys).toEqual([]);
    expect((await runAs('coder')).stderr).toContain('(no_key_stored)');
    expect((await run('seat', 'mint', 'coder')).stdout).toBe('coder: minted\n');
    expect((await run('seat', 'mint', 'coder')).stdout).toBe('coder: already stored\n');
    expect((await run('seat', 'whoami', 'coder')).stdout).toContain('the seat of the role coder');
    expect((await run('seat', 'list')).stdout).toMatch(/coder .* linked .* of 2 .*tok_.*, accepted 20/);
    const started = await runAs('coder');
    expect([started.code, started.stdout]).toEqual([0, expect.stringContaining('works under the seat of the role coder')]);
    const [mission] = await client.listMissions();
    const [minted] = (await client.seats()).filter(({ role }) => role === 'coder');
    expect(mission?.seat).toEqual({ id: minted?.id, role: 'coder', keyId: minted?.keys[0]?.id });
    expect((await run('show', mission?.id ?? '')).stdout).toContain(`seat    coder (${minted?.id})`);
    expect((await run('seat', 'rotate', 'coder')).stdout).toBe('coder: rotated\n');
    const [rotated] = (await client.seats()).filter(({ role }) => role === 'coder');
    expect(rotated?.keys).toHaveLength(1);
    expect(rotated?.keys[0]?.id).not.toBe(minted?.keys[0]?.id);
    const key = await client.mintSeatKey(rotated?.id ?? '', 'in the environment');
    const env = { [`FIRECREW_SEAT_KEY_${rotated?.id}`]: JSON.stringify(key) };
    const byEnvironment = await home.start(['seat', 'whoami', 'coder'], { env }).ended;
    expect(byEnvironment.stdout).toContain(key.keyId);
    expect((await run('seat', 'revoke', 'coder')).stdout).toBe('coder: revoked\n');
    expect((await run('seat', 'whoami', 'coder')).code).toBe(1);
    for (const text of [...shown, byEnvironment.stdout]) expect(text).not.toMatch(/fcs_/);
  });

  it('fall back to the key of the workspace where the settings say so, with the reason, and not otherwise', async () => {
    await client.linkSeat('writer');
    await home.run('seat', 'mint', 'writer');
    const [writer] = (await client.seats()).filter(({ role }) => role === 'writer');
    await client.revokeSeatKey(writer?.keys[0]?.id ?? '');
    const refused = await runAs('writer');
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('seat_refused')]);
    expect(refused.stderr).toContain('(key_rejected)');
    expect(refused.stderr).toContain('firecrew seat revoke writer');
    writeFileSync(join(home.root, 'config.json'), JSON.stringify({ seatFallback: 'missing_key' }));
    expect((await runAs('writer')).code).toBe(1);
    expect((await runAs('nobody')).stdout).toContain("works under the workspace's key (seat_not_linked)");
    writeFileSync(join(home.root, 'config.json'), JSON.stringify({ seatFallback: 'always' }));
    expect((await runAs('writer')).stdout).toContain("works under the workspace's key (key_rejected)");
    expect((await client.listMissions())[0]?.seat).toBeNull();
  });

  describe('with an issuer that a file describes', () => {
    const path = join(home.folder, 'issuer.json');
    const admin = join(home.folder, 'admin-token');
    const withIssuer = { FIRECREW_SEAT_ISSUER: path };
    const by = async (...args: string[]) => {
      const ended = await home.start(args, { env: withIssuer }).ended;
      shown.push(ended.stdout, ended.stderr);
      return ended;
    };
    const seatOf = async (role: string) => (await client.seats()).find((item) => item.role === role);
    /** The API of the server itself, as an issuer file describes any other. */
    const portal = async () => ({
      version: 1,
      name: 'portal',
      kind: 'http',
      url: (await home.status()).url,
      credential: { header: 'authorization', prefix: 'Bearer ', from: { file: admin } },
      mint: { method: 'POST', path: '/v1/seats/{seatId}/keys', body: { name: '{name}' }, statuses: [201], key: '/key', keyId: '/keyId' },
      revoke: { method: 'POST', path: '/v1/seat-keys/{keyId}/revoke', body: { successor: '{successor}' }, statuses: [200] },
      whoami: { method: 'GET', path: '/v1/whoami', as: 'key', statuses: [200] },
      mintRight: { method: 'GET', path: '/v1/seats', statuses: [200] },
    });
    beforeAll(() => writeFileSync(admin, readFileSync(join(home.root, 'run', 'token'), 'utf8'), { mode: 0o600 }));

    it.each(issuerCases)('that is the server by its own API: $name', async ({ run: keeps }) => {
      const parsed = parseIssuer(await portal());
      if (!('issuer' in parsed) || parsed.issuer.kind !== 'http') throw new Error('faults' in parsed ? parsed.faults : 'no HTTP issuer');
      const { id } = await client.linkSeat('portal-test');
      const issuer = new HttpIssuer({
        file: parsed.issuer,
        credential: readFileSync(admin, 'utf8').trim(),
        workspace: (await client.whoami()).workspace,
      });
      await keeps({
        mint: (wish) => issuer.mint({ ...wish, seatId: id }),
        revoke: (keyId) => issuer.revoke(keyId),
        askMintRight: () => issuer.askMintRight(),
        ...(issuer.verify === undefined ? {} : { verify: issuer.verify }),
      });
    });

    it('are minted, used, rotated and ended by it, and by it alone; a dry run sends nothing', async () => {
      writeFileSync(path, JSON.stringify(await portal()), { mode: 0o600 });
      await client.linkSeat('poet');
      expect((await by('seat', 'mint', 'poet', '--dry-run')).stdout).toBe('poet: minted (dry run)\n');
      expect((await seatOf('poet'))?.keys).toEqual([]);
      expect((await by('seat', 'mint', 'poet')).stdout).toBe('poet: minted\n');
      expect((await by('seat', 'whoami', 'poet')).stdout).toContain('the issuer portal, which accepts it');
      expect((await runAs('poet')).stdout).toContain('works under the seat of the role poet');
      const [first] = (await seatOf('poet'))?.keys ?? [];
      expect((await by('seat', 'rotate', 'poet', '--dry-run')).stdout).toBe('poet: rotated (dry run)\n');
      expect((await seatOf('poet'))?.keys[0]?.id).toBe(first?.id);
      expect((await by('seat', 'rotate', 'poet')).stdout).toBe('poet: rotated\n');
      expect((await seatOf('poet'))?.keys).toHaveLength(1);
      expect((await by('seat', 'list')).stdout).toMatch(/poet .*tok_.*, of portal/);
      const other = await run('seat', 'revoke', 'poet');
      expect([other.code, other.stdout]).toEqual([1, expect.stringContaining('made by the issuer portal')]);
      expect((await by('seat', 'revoke', 'poet', '--dry-run')).stdout).toBe('poet: revoked (dry run)\n');
      expect((await seatOf('poet'))?.keys).toHaveLength(1);
      expect((await by('seat', 'revoke', 'poet')).stdout).toBe('poet: revoked\n');
      expect((await seatOf('poet'))?.keys).toEqual([]);
    });

    it('are taken from where an operator put them, and forgotten once they are revoked', async () => {
      const { id } = await client.linkSeat('guest');
      const { key, keyId } = await client.mintSeatKey(id, 'put in');
      const secret = join(home.folder, 'guest-key');
      writeFileSync(secret, `${key}\n`, { mode: 0o600 });
      writeFileSync(path, JSON.stringify({ version: 1, name: 'ops', kind: 'static', keys: { guest: { keyId, from: { file: secret } } } }));
      expect((await by('seat', 'mint', 'guest')).stdout).toBe('guest: minted\n');
      expect((await by('seat', 'whoami', 'guest')).stdout).toContain('the issuer ops, which accepts it');
      expect((await by('seat', 'mint', 'coder')).stdout).toContain('offers no key for this role');
      expect((await by('seat', 'revoke', 'guest')).stdout).toContain('has no way to end keys');
      await client.revokeSeatKey(keyId);
      expect((await by('seat', 'revoke', 'guest')).stdout).toBe('guest: revoked (it was already gone there)\n');
    });

    it('say what is wrong with the file, and print no secret', async () => {
      writeFileSync(path, '{}');
      const refused = await by('seat', 'mint', 'coder');
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('issuer_invalid')]);
      const token = readFileSync(admin, 'utf8').trim();
      for (const text of shown) for (const secret of [/fcs_/, new RegExp(token)]) expect(text).not.toMatch(secret);
    });
  });

  it('are bounded in what they use, part by part, and show it', async () => {
    expect((await run('seat', 'link', 'spender', '--day-tokens', '200000', '--total-money', '2.5')).code).toBe(0);
    expect((await run('seat', 'link', 'spender', '--day-tokens', 'none', '--turn-tokens', '5000')).code).toBe(0);
    expect((await seatBudget('spender')).budget).toMatchObject({ turnTokens: 5_000, dayTokens: null, totalMoney: 2.5 });
    expect((await run('seat', 'list')).stdout).toMatch(/spender .*0 of 2.5 in money in all/);
    const showed = await run('seat', 'show', 'spender');
    expect(showed.stdout).toContain('used: 0 of 2.5 in money in all');
    expect(showed.stdout).toContain('no turn has run under it yet');
    expect(parse((await run('seat', 'show', 'spender', '--json')).stdout)).toMatchObject({ attempts: [], seat: { use: { attempts: 0 } } });
    expect((await run('seat', 'link', 'spender', '--day-tokens', '9000', '--dry-run')).stdout).toContain(
      'would be changed, with 1 turn at once, dayTokens 9000',
    );
    expect((await seatBudget('spender')).budget?.dayTokens).toBeNull();
    expect((await run('seat', 'link', 'spender', '--lease', '90m')).code).toBe(0);
    expect((await seatBudget('spender')).leaseMs).toBe(5_400_000);
    expect((await run('seat', 'link', 'spender', '--lease', 'none', '--dry-run')).stdout).toContain('leases without a term');
    expect((await run('seat', 'link', 'spender', '--lease', '90m', '--dry-run')).stdout).toContain('nothing would change');
    for (const args of [
      ['link', 'spender', '--lease', 'long'],
      ['show', 'nobody'],
      ['link', 'spender', '--day-tokens', '999'],
      ['link', 'spender', '--day-money', 'much'],
    ])
      expect([args, (await home.run('seat', ...args)).code]).toEqual([args, 2]);
  });

  it('would be linked, and are not, by a dry run', async () => {
    await client.linkSeat('coder');
    const seats = await client.seats();
    expect((await run('seat', 'link', 'newcomer', '--dry-run')).stdout).toContain('a seat would be made, with 1 turn at once');
    expect((await run('seat', 'link', 'coder', '--turns', '9', '--dry-run')).stdout).toContain('would be changed, with 9 turns');
    expect(await client.seats()).toEqual(seats);
  });

  it('are refused by name where that is none', async () => {
    for (const args of [
      ['seat', 'link', 'Not A Role'],
      ['seat', 'link', 'pairing'],
      ['seat', 'link', 'coder', '--turns', '0'],
      ['seat', 'unlink', 'nobody'],
    ])
      expect([args, (await home.run(...args)).code]).toEqual([args, 2]);
  });
});

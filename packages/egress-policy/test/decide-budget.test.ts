import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Budget,
  budgetsFor,
  createPolicy,
  decideBytes,
  decideTunnel,
  EgressConfigError,
  formatBudget,
  HOST_BUDGETS_MAX,
  loadBudgets,
  parseOperatorPolicy,
} from '../src/index.ts';

const host = (over: Partial<Budget> = {}): Budget => ({
  scope: 'host',
  key: 'a.example.test',
  label: 'a.example.test',
  bytes: undefined,
  connections: undefined,
  ...over,
});
const turn = (over: Partial<Budget> = {}): Budget => ({ ...host(), scope: 'turn', key: '', label: 'turn', ...over });
const at = (budget: Budget, bytes: number, connections = 0) => ({ budget, used: { bytes, connections } });

describe('one more tunnel', () => {
  it.each([
    ['no budget', [], undefined],
    ['one below the bound', [at(host({ connections: 2 }), 0, 1)], undefined],
    ['at the bound', [at(host({ connections: 2 }), 0, 2)], 'host_connections_spent'],
    ['at the bound of the turn', [at(host({ connections: 3 }), 0, 2), at(turn({ connections: 2 }), 0, 2)], 'turn_connections_spent'],
    ['a byte left', [at(host({ bytes: 10 }), 9, 99)], undefined],
    ['no byte left', [at(host({ bytes: 10 }), 10)], 'host_bytes_spent'],
    ['no byte left of the turn', [at(turn({ bytes: 10 }), 10)], 'turn_bytes_spent'],
    ['a budget that was lowered', [at(host({ connections: 1 }), 0, 7)], 'host_connections_spent'],
  ])('with %s', (_what, charged, reason) => {
    expect(decideTunnel(charged)?.reason).toBe(reason);
  });
});

describe('the next bytes', () => {
  it.each([
    ['without a budget', [], 5, 5, undefined],
    ['to the last byte', [at(host({ bytes: 10 }), 5)], 5, 5, undefined],
    ['past it', [at(host({ bytes: 10 }), 5)], 6, 5, 'host_bytes_spent'],
    ['past the end', [at(host({ bytes: 10 }), 10)], 1, 0, 'host_bytes_spent'],
    ['past that of the turn', [at(host({ bytes: 10 }), 5), at(turn({ bytes: 20 }), 18)], 6, 2, 'turn_bytes_spent'],
    ['with two that are as tight', [at(host({ bytes: 10 }), 8), at(turn({ bytes: 20 }), 18)], 6, 2, 'host_bytes_spent'],
    ['of one that was lowered', [at(host({ bytes: 10 }), 11)], 1, 0, 'host_bytes_spent'],
    ['with a bound of tunnels alone', [at(host({ connections: 1 }), 99, 1)], 5, 5, undefined],
  ])('%s', (_what, charged, bytes, granted, reason) => {
    const decision = decideBytes(charged, bytes);
    expect([decision.granted, decision.spent?.reason]).toEqual([granted, reason]);
  });

  it('never sum up to more than any budget, and to all of the tightest one however they are cut', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 50 });
    const limit = fc.integer({ min: 1, max: 500_000 });
    fc.assert(
      fc.property(sizes, limit, limit, (chunks, first, second) => {
        const budgets = [host({ bytes: first }), turn({ bytes: second })];
        let passed = 0;
        let isSpent = false;
        for (const chunk of chunks) {
          const { granted, spent } = decideBytes(
            budgets.map((budget) => at(budget, passed)),
            chunk,
          );
          passed += granted;
          isSpent ||= spent !== undefined;
          expect(spent === undefined).toBe(granted === chunk);
        }
        const asked = chunks.reduce((sum, chunk) => sum + chunk, 0);
        expect(passed).toBe(Math.min(asked, first, second));
        expect(isSpent).toBe(asked > Math.min(first, second));
      }),
    );
  });
});

describe('the budgets of a host', () => {
  const budgets = loadBudgets({
    turn: { bytes: 9 },
    eachHost: { connections: 3 },
    hosts: [
      { host: '.Example.test', bytes: 5 },
      { host: 'a.example.test.', connections: 1 },
    ],
  });

  it.each([
    ['a.example.test', ['a.example.test', '.example.test', 'turn']],
    ['b.example.test', ['.example.test', 'turn']],
    ['example.test', ['.example.test', 'turn']],
    ['notexample.test', ['each host', 'turn']],
  ])('%s are its own entries, else that of each host, and that of the turn', (name, labels) => {
    expect(budgetsFor(budgets, name).map(({ label }) => label)).toEqual(labels);
  });

  it('count a name by itself, and a domain as a whole', () => {
    expect(budgetsFor(budgets, 'b.example.test').map(({ key }) => key)).toEqual(['.example.test', '']);
    expect(budgetsFor(budgets, 'other.test').map(({ key }) => key)).toEqual(['other.test', '']);
    expect(budgetsFor(loadBudgets(), 'other.test')).toEqual([]);
  });

  it('are told with their bound', () => {
    const [spent] = [decideTunnel([at(host({ connections: 4 }), 0, 4)])];
    expect(spent === undefined ? '' : formatBudget(spent)).toBe('budget a.example.test: 4 connections');
    const bytes = decideBytes([at(turn({ bytes: 7 }), 7)], 1).spent;
    expect(bytes === undefined ? '' : formatBudget(bytes)).toBe('budget turn: 7 bytes');
  });
});

describe('a budget that means nothing', () => {
  it.each([
    ['no bound', { turn: {} }],
    ['nothing', { eachHost: { bytes: 0 } }],
    ['less than nothing', { turn: { connections: -1 } }],
    ['a part of a byte', { turn: { bytes: 1.5 } }],
    ['a number that is not exact', { turn: { bytes: 2 ** 60 } }],
    ['a host that is none', { hosts: [{ host: 'a b', bytes: 1 }] }],
    ['an address', { hosts: [{ host: '10.0.0.1', bytes: 1 }] }],
    ['a port', { hosts: [{ host: 'a.example.test:443', bytes: 1 }] }],
    ['too many hosts', { hosts: Array.from({ length: HOST_BUDGETS_MAX + 1 }, (_, n) => ({ host: `h${n}.test`, bytes: 1 })) }],
  ])('stops the load with %s', (_what, budgets) => {
    expect(() => createPolicy({ rules: [], budgets })).toThrow(EgressConfigError);
    expect(parseOperatorPolicy({ preset: 'open', budgets })).toMatchObject({ ok: false });
  });

  it('is named with its place', () => {
    const parsed = parseOperatorPolicy({
      preset: 'open',
      budgets: {
        turn: {},
        hosts: [
          { host: 'ok.test', bytes: 1 },
          { host: 'x', bytes: 0 },
        ],
      },
    });
    expect(parsed.ok ? [] : parsed.problems.map(({ path }) => path)).toEqual(['budgets.turn', 'budgets.hosts[1]']);
  });
});

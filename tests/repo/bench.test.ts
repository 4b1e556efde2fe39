import { describe, expect, it } from 'vitest';
import { benchTable, measured, notMeasured } from '../../bench/support/row.ts';
import { bestInTurn, median, quantile } from '../../bench/support/timing.ts';

describe('a row of the bench', () => {
  it.each([
    [0.5, { atLeast: 0.5 }, '>= 0.5', true],
    [0.49, { atLeast: 0.5 }, '>= 0.5', false],
    [4, { atMost: 4 }, '<= 4', true],
    [4.01, { atMost: 4 }, '<= 4', false],
  ] as const)('of %d against %o says whether it is met', (value, target, text, met) => {
    expect(measured('a', value, 'x', target)).toEqual({ name: 'a', value, unit: 'x', target: text, met });
  });

  it('without a target or a value says neither', () => {
    expect(measured('a', 1, 'ms')).toEqual({ name: 'a', value: 1, unit: 'ms', target: null, met: null });
    expect(notMeasured('a', 'x', 'there is no sshd')).toEqual({
      name: 'a',
      value: null,
      unit: 'x',
      target: null,
      met: null,
      note: 'there is no sshd',
    });
  });

  it('stands in a table with its verdict', () => {
    const table = benchTable([measured('a', 0.25, 'x', { atLeast: 0.5 }, 'slow'), notMeasured('b', 'x', 'no peer')]);
    expect(table.split('\n').map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
      '| what | value | target | | note |',
      '| ---- | ------------ | ------ | ------ | ------- |',
      '| a | 0.250 x | >= 0.5 | missed | slow |',
      '| b | not measured | | | no peer |',
    ]);
  });
});

describe('numbers of the bench', () => {
  it('are a median and a share that is not exceeded', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(median(values)).toBe(51);
    expect(quantile(values, 0.99)).toBe(100);
    expect(quantile([], 0.5)).toBeNaN();
  });

  it('are the best of runs that take turns', async () => {
    const order: string[] = [];
    const run = (name: string, times: number[]) => async () => {
      order.push(name);
      return times.shift() ?? 0;
    };
    expect(await bestInTurn(2, run('ours', [5, 3]), run('peer', [7, 9]))).toEqual({ ours: 3, peer: 7 });
    expect(order).toEqual(['peer', 'ours', 'peer', 'ours']);
  });
});

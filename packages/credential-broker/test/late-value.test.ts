import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LateValue } from '../src/index.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('gives all who wait the first value, and later ones the newest', async () => {
  const late = new LateValue<string>();
  const waiting = [late.take(1_000), late.take(5)];
  late.set('one');
  late.set('two');
  expect(await Promise.all(waiting)).toEqual(['two', 'two']);
  expect(await late.take(0)).toBe('two');
  expect(vi.getTimerCount()).toBe(0);
});

it('gives nothing when none came in time, and the value to who asks again', async () => {
  const late = new LateValue<string | null>();
  const taken = late.take(1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await taken).toBeUndefined();
  late.set(null);
  expect(await late.take(0)).toBeNull();
});

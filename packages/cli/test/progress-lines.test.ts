import { expect, it } from 'vitest';
import { progressLines } from '../src/images/progress-lines.ts';

it('says each step once, and how far a long one is now and then', () => {
  const said: string[] = [];
  let now = 0;
  const say = progressLines(
    (line) => said.push(line),
    () => now,
  );
  say({ step: 'reading' });
  say({ step: 'reading' });
  for (const [at, fraction] of [
    [100, 0],
    [200, 0.1],
    [5_099, 0.5],
    [5_100, 0.516],
    [6_000, 0.9],
  ] as const) {
    now = at;
    say({ step: 'packing', fraction });
  }
  expect(said).toEqual(['reading ...', 'packing ...', 'packing ... 51 %']);
});

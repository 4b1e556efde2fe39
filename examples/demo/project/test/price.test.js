import assert from 'node:assert/strict';
import test from 'node:test';
import { priceOf } from '../price.js';

await test('fewer than ten items cost the full price', () => {
  assert.equal(priceOf(9, 100), 900);
});

await test('ten items get the discount', () => {
  assert.equal(priceOf(10, 100), 900);
});

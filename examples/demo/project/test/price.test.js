import assert from 'node:assert/strict';
import test from 'node:test';
import { priceOf } from '../price.js';

test('fewer than ten items cost the full price', () => {
  assert.equal(priceOf(9, 100), 900);
});

test('ten items get the discount', () => {
  assert.equal(priceOf(10, 100), 900);
});

import { describe, expect, it } from 'vitest';
import { mayPass } from '../src/index.ts';

describe('a failed delivery', () => {
  it.each([
    [undefined, true],
    ['git_timed_out', true],
    ['git_failed', true],
    ['git_cancelled', true],
    ['git_not_found', true],
    ['blob_store_unavailable', true],
    ['git_output_too_large', false],
    ['tree_missing', false],
    ['base_missing', false],
    ['content_mismatch', false],
    ['tree_not_as_planned', false],
    ['blob_damaged', false],
  ])('with the code %s may pass when it is tried again: %s', (code, passes) => {
    expect(mayPass(code)).toBe(passes);
  });
});

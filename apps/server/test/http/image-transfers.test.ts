import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { ImageTransfers } from '../../src/http/image-transfers.ts';

/** The code of the refusal, or undefined. */
function refusalOf(begin: () => unknown): string | undefined {
  try {
    begin();
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
}

describe('transfers of images', () => {
  it('are four for each node, and each is counted out once', () => {
    const transfers = new ImageTransfers();
    const [end] = Array.from({ length: 4 }, () => transfers.begin('a'));
    expect(refusalOf(() => transfers.begin('a'))).toBe('image_transfers_full');
    expect(refusalOf(() => transfers.begin('b'))).toBe(undefined);
    end?.();
    end?.();
    expect(refusalOf(() => transfers.begin('a'))).toBe(undefined);
    expect(refusalOf(() => transfers.begin('a'))).toBe('image_transfers_full');
  });

  it('are 256 for all nodes together', () => {
    const transfers = new ImageTransfers();
    const ends = Array.from({ length: 256 }, (_none, at) => transfers.begin(`node-${at}`));
    expect(refusalOf(() => transfers.begin('another'))).toBe('image_transfers_full');
    ends[0]?.();
    expect(refusalOf(() => transfers.begin('another'))).toBe(undefined);
  });
});

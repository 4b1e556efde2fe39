import { describe, expect, it } from 'vitest';
import { judgeReply } from '../../src/index.ts';

const WHOLE = { status: 200, contentLength: '100', contentRange: null, contentEncoding: null };
const PART = { status: 206, contentLength: '70', contentRange: 'bytes 30-99/100', contentEncoding: null };
const ASKED = { from: 30, sizeBytes: 100 };

describe('an answer with bytes of a file', () => {
  it.each([
    ['is taken from where it was asked for', PART, ASKED, 30],
    ['is taken whole from its beginning', WHOLE, { from: 0, sizeBytes: 100 }, 0],
    ['is taken whole where a part was asked for', WHOLE, ASKED, 0],
    ['may say that it is not packed', { ...PART, contentEncoding: 'identity' }, ASKED, 30],
  ])('%s', (_what, reply, asked, from) => {
    expect(judgeReply(reply, asked)).toEqual({ verdict: 'take', from });
  });

  it.each([
    ['with a redirect', { ...WHOLE, status: 302 }, 'image_redirected'],
    ['with a permanent redirect', { ...WHOLE, status: 308 }, 'image_redirected'],
    ['that it is not there', { ...WHOLE, status: 404 }, 'image_not_offered'],
    ['that the token is not known', { ...WHOLE, status: 401 }, 'image_transfer_broken'],
    ['that there are too many transfers', { ...WHOLE, status: 429 }, 'image_transfer_broken'],
    ['that it failed', { ...WHOLE, status: 502 }, 'image_transfer_broken'],
    ['that there is no such part', { ...WHOLE, status: 416 }, 'image_answer_wrong'],
    ['without content', { ...WHOLE, status: 204 }, 'image_answer_wrong'],
    ['packed', { ...PART, contentEncoding: 'gzip' }, 'image_answer_wrong'],
    ['of no length', { ...WHOLE, contentLength: null }, 'image_length_wrong'],
    ['of another length', { ...WHOLE, contentLength: '101' }, 'image_length_wrong'],
    ['of a length that is no number', { ...WHOLE, contentLength: '0x64' }, 'image_length_wrong'],
    ['with the length of the whole for a part', { ...PART, contentLength: '100' }, 'image_length_wrong'],
    ['with a part that it does not name', { ...PART, contentRange: null }, 'image_length_wrong'],
    ['with a part that begins elsewhere', { ...PART, contentRange: 'bytes 29-99/100' }, 'image_length_wrong'],
    ['with a part that ends elsewhere', { ...PART, contentRange: 'bytes 30-98/100' }, 'image_length_wrong'],
    ['with a part of a larger file', { ...PART, contentRange: 'bytes 30-99/101' }, 'image_length_wrong'],
    ['with a part of unknown size', { ...PART, contentRange: 'bytes 30-99/*' }, 'image_length_wrong'],
    ['with several parts', { ...PART, contentRange: 'bytes 30-40/100, bytes 41-99/100' }, 'image_length_wrong'],
  ])('%s is refused', (_what, reply, code) => {
    expect(judgeReply(reply, ASKED)).toMatchObject({ verdict: 'refuse', code });
  });
});

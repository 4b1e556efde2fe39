import { describe, expect, it } from 'vitest';
import { CodedError, codeOf, ID_LENGTH, newId, parseId, shortId } from '../src/index.ts';

describe('ids', () => {
  it('carry the prefix of their kind and parse back as that kind only', () => {
    const id = newId('mission');
    expect(id).toMatch(/^msn_[0-9a-hjkmnp-tv-z]{16}$/);
    expect(parseId('mission', id)).toBe(id);
    expect(parseId('turn', id)).toBeUndefined();
  });

  it.each(['', 'msn_', 'msn_short', `msn_${'i'.repeat(ID_LENGTH)}`, `msn_${'0'.repeat(ID_LENGTH + 1)}`, '../msn_0000000000000000'])(
    'refuse %j',
    (text) => {
      expect(parseId('mission', text)).toBeUndefined();
    },
  );

  it('are shortened to their last 8 characters', () => {
    expect(shortId(newId('mission', () => '0123456789abcdef'))).toBe('89abcdef');
  });
});

describe('coded errors', () => {
  it('keep code, id, action and cause apart from the message', () => {
    const cause = new Error('inner');
    const error = new CodedError('thing_missing', 'thing x is missing', { id: 'x', action: 'Make it.', cause });
    expect({ code: error.code, id: error.id, action: error.action, cause: error.cause }).toEqual({
      code: 'thing_missing',
      id: 'x',
      action: 'Make it.',
      cause,
    });
  });

  it('are recognised by shape, so that an error of another package counts', () => {
    expect(codeOf(Object.assign(new Error('x'), { code: 'ENOENT' }))).toBe('ENOENT');
    expect(codeOf(Object.assign(new Error('x'), { code: 7 }))).toBeUndefined();
    expect(codeOf('text')).toBeUndefined();
  });
});

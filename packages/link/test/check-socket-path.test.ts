import { expect, it } from 'vitest';
import { checkSocketPath } from '../src/check-socket-path.ts';

it('takes 107 bytes and refuses 108', () => {
  expect(() => checkSocketPath(`/${'a'.repeat(106)}`)).not.toThrow();
  expect(() => checkSocketPath(`/${'a'.repeat(107)}`)).toThrowError(expect.objectContaining({ code: 'socket_path_too_long' }));
});

it('counts bytes, not characters', () => {
  expect(() => checkSocketPath(`/${'é'.repeat(54)}`)).toThrowError(expect.objectContaining({ code: 'socket_path_too_long' }));
});

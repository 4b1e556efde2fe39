import { CodedError } from '@firecrew/base';
import { DrizzleQueryError } from 'drizzle-orm/errors';
import type { FastifyBaseLogger } from 'fastify';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { answerError } from '../../src/http/errors.ts';

const SECRET = 'password=hunter2';
const withFields = (fields: object) => Object.assign(new Error(SECRET), fields);

/** Answers an error; `logged` is what the server's own log has of it. */
function answer(error: unknown): { status: number; error: object; logged: string } {
  const logged: string[] = [];
  const log: FastifyBaseLogger = pino({}, { write: (line) => void logged.push(line) });
  const { status, body } = answerError(error, log);
  return { status, error: body.error, logged: logged.join('') };
}

describe('an error of a request', () => {
  it('that is expected is told with its code, its id and what to do', () => {
    const { status, error, logged } = answer(new CodedError('mission_ended', 'it ended', { id: 'msn_1', action: 'Look.', cause: SECRET }));
    expect([status, error]).toEqual([409, { code: 'mission_ended', message: 'it ended', id: 'msn_1', action: 'Look.' }]);
    expect(logged).toBe('');
    expect(answer(new CodedError('unavailable', 'no')).error).toEqual({ code: 'unavailable', message: 'no' });
  });

  it.each([
    ['of the framework', withFields({ statusCode: 400 }), 400, 'bad_request'],
    ['about a body that is too large', withFields({ statusCode: 413 }), 413, 'too_large'],
  ])('%s is one of the caller', (_what, error, status, code) => {
    expect(answer(error)).toEqual({ status, error: { code, message: SECRET }, logged: '' });
  });

  it.each([
    ['ENOSPC', withFields({ code: 'ENOSPC' })],
    ['EDQUOT', withFields({ code: 'EDQUOT' })],
    ['53100 of a statement', new DrizzleQueryError('insert', [], withFields({ code: '53100', severity: 'ERROR' }))],
  ])('%s says that a disk is full', (_what, thrown) => {
    const { status, error, logged } = answer(thrown);
    expect([status, error]).toEqual([507, { code: 'disk_full', message: expect.any(String), action: expect.stringContaining('space') }]);
    expect(logged).toContain(SECRET);
  });

  it.each([
    ['refuses', withFields({ code: 'ECONNREFUSED' })],
    ['breaks off', new Error(SECRET)],
    ['is stopped', withFields({ code: '57P01', severity: 'FATAL' })],
    ['starts', withFields({ code: '57P03', severity: 'FATAL' })],
    ['has no connection left', withFields({ code: '53300', severity: 'FATAL' })],
  ])('of a database that %s says so', (_what, cause) => {
    const { status, error, logged } = answer(new DrizzleQueryError('select', [], cause));
    expect([status, error]).toEqual([
      503,
      { code: 'database_unavailable', message: expect.any(String), action: expect.stringContaining('log') },
    ]);
    expect(logged).toContain(SECRET);
  });

  it.each([
    ['of a statement that is wrong', new DrizzleQueryError('select', [], withFields({ code: '42703', severity: 'ERROR' }))],
    ['without a code', new Error(SECRET)],
    ['of another code', withFields({ code: 'EIO' })],
    ['with a code that no caller is told', new CodedError('database_newer', SECRET)],
    ['of the framework itself', withFields({ statusCode: 500 })],
    ['that is none', SECRET],
  ])('%s is told without its text, which the log has', (_what, error) => {
    const found = answer(error);
    expect([found.status, found.error]).toEqual([500, { code: 'internal', message: 'the server failed; its log has the cause' }]);
    expect(found.logged).toContain(SECRET);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkEnvironment,
  deniedWords,
  looksLikeSecretName,
  MAX_ENVIRONMENT_BYTES,
  MAX_ENVIRONMENT_ENTRIES,
  MAX_STRING_BYTES,
} from '../src/index.ts';

const refusal = (entries: unknown, policy = {}) => {
  const result = checkEnvironment(entries, policy);
  return result.verdict === 'refused' ? result : undefined;
};

describe('the environment of an exec', () => {
  it.each([undefined, null, {}, { LANG: 'C', EMPTY: '', lower: 'x' }, Object.assign(Object.create(null), { A: '1' })])(
    'takes %j',
    (entries) => {
      expect(checkEnvironment(entries)).toEqual({ verdict: 'accepted', environment: { ...(entries ?? {}) } });
    },
  );

  it.each<[unknown, string, string | undefined]>([
    [[], 'environment_not_an_object', undefined],
    ['A=1', 'environment_not_an_object', undefined],
    [7, 'environment_not_an_object', undefined],
    [new Map([['A', '1']]), 'environment_not_an_object', undefined],
    [new Date(0), 'environment_not_an_object', undefined],
    [{ '': 'x' }, 'environment_empty_name', ''],
    [{ 'A=B': 'x' }, 'environment_bad_name', 'A=B'],
    [{ 'A\0': 'x' }, 'environment_bad_name', 'A\0'],
    [{ A: 'x\0y' }, 'environment_nul', 'A'],
    [{ A: 1 }, 'environment_not_a_string', 'A'],
    [{ A: null }, 'environment_not_a_string', 'A'],
    [{ A: ['x'] }, 'environment_not_a_string', 'A'],
    [{ FIRECREW_ROUND: '9' }, 'environment_reserved_name', 'FIRECREW_ROUND'],
    [{ firecrew_attempt: '9' }, 'environment_reserved_name', 'firecrew_attempt'],
    [{ API_KEY: 'x' }, 'environment_secret_name', 'API_KEY'],
    [{ URL: 'https://user:hunter2@example.com/x' }, 'environment_secret_value', 'URL'],
    [{ URL: 'https://ghp_abc@example.com/x' }, 'environment_secret_value', 'URL'],
  ])('refuses %j by %s', (entries, rule, subject) => {
    expect(refusal(entries)).toMatchObject({
      verdict: 'refused',
      reason: 'bounds_rejected',
      rule,
      ...(subject === undefined ? {} : { subject }),
    });
  });

  it('refuses the whole start for one bad entry among good ones', () => {
    expect(refusal({ A: '1', GITHUB_TOKEN: 'x', B: '2' })?.subject).toBe('GITHUB_TOKEN');
  });

  it('takes a secret-shaped name that the contract declares, in that spelling alone', () => {
    const policy = { contract: ['ANTHROPIC_API_KEY'] };
    expect(refusal({ ANTHROPIC_API_KEY: 'x' }, policy)).toBeUndefined();
    expect(refusal({ anthropic_api_key: 'x' }, policy)?.rule).toBe('environment_secret_name');
    expect(refusal({ OPENAI_API_KEY: 'x' }, policy)?.rule).toBe('environment_secret_name');
  });

  it('does not let a contract declare a name of the platform', () => {
    expect(refusal({ FIRECREW_KEY: 'x' }, { contract: ['FIRECREW_KEY'] })?.rule).toBe('environment_reserved_name');
  });

  it.each(deniedWords().flatMap((word) => [word, word.toLowerCase(), mixed(word), `MY_${word}`, `${word}_X`, `my-${word.toLowerCase()}`]))(
    'refuses the name %s',
    (name) => {
      expect(refusal({ [name]: 'hunter2-value' })).toMatchObject({ rule: 'environment_secret_name', subject: name });
    },
  );

  it.each([
    'PASSWD',
    'PGPASS',
    'PGPASSWORD',
    'COOKIE',
    'SENTRY_DSN',
    'myApiKey',
    'authToken',
    'AWS_SECRET_ACCESS_KEY',
    'GH_TOKEN2',
    'apiKeys',
    'MYSQL_PWD',
    'npm_config__authToken',
  ])('takes %s for a secret', (name) => {
    expect(looksLikeSecretName(name)).toBe(true);
  });

  it.each([
    'AUTHOR',
    'GIT_AUTHOR_NAME',
    'KEYBOARD_LAYOUT',
    'MONKEY',
    'TOKENIZERS_PARALLELISM',
    'PATH',
    'COMPASS',
    'PRIVATELY',
    'PWD',
    'SECRETARY',
    'BYPASS_CACHE',
    'HOME',
  ])('takes %s for an ordinary name', (name) => {
    expect(looksLikeSecretName(name)).toBe(false);
  });

  it('takes URLs without user info, and the ssh user of a forge', () => {
    expect(refusal({ A: 'https://example.com/a@b', B: 'ssh://git@example.com/x', C: 'user@example.com' })).toBeUndefined();
    expect(refusal({ B: 'ssh://git:x@example.com/x' })?.rule).toBe('environment_secret_value');
  });

  it('never lets a value into a refusal', () => {
    const value = fc.string({ unit: 'binary', minLength: 8 }).map((text) => `s3cr3t${text}`);
    const name = fc.constantFrom('TOKEN', 'A=B', 'FIRECREW_X', 'OK\0');
    fc.assert(
      fc.property(name, value, (key, secret) => {
        const result = refusal({ [key]: secret });
        return result !== undefined && !JSON.stringify(result).includes('s3cr3t');
      }),
    );
    expect(JSON.stringify(refusal({ A: 's3cr3t\0' }))).not.toContain('s3cr3t');
    expect(JSON.stringify(refusal({ A: { s3cr3t: 1 } }))).not.toContain('s3cr3t');
    expect(JSON.stringify(refusal({ A: `https://u:s3cr3t@h/` }))).not.toContain('s3cr3t');
  });

  it('bounds one entry, their number and their sum at the edge', () => {
    expect(refusal({ A: 'x'.repeat(MAX_STRING_BYTES - 2) })).toBeUndefined();
    expect(refusal({ A: 'x'.repeat(MAX_STRING_BYTES - 1) })).toMatchObject({ rule: 'environment_too_large', subject: 'A' });
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, '']));
    expect(refusal(many(MAX_ENVIRONMENT_ENTRIES))).toBeUndefined();
    expect(refusal(many(MAX_ENVIRONMENT_ENTRIES + 1))?.rule).toBe('environment_too_many');
    const full = (extra: number) =>
      Object.fromEntries(
        Array.from({ length: 8 }, (_, at) => [`V${at}`, 'x'.repeat(MAX_ENVIRONMENT_BYTES / 8 - 4 + (at === 7 ? extra : 0))]),
      );
    expect(refusal(full(0))).toBeUndefined();
    expect(refusal(full(1))).toMatchObject({ rule: 'environment_too_large', subject: 'V7' });
  });

  it('gives a copy: changing it leaves the input as it was, and the list of words too', () => {
    const input = { A: '1' };
    const result = checkEnvironment(input);
    if (result.verdict === 'accepted') Object.assign(result.environment, { A: '2' });
    expect(input).toEqual({ A: '1' });
    deniedWords().length = 0;
    expect(deniedWords()).not.toEqual([]);
  });

  it('keeps a variable called __proto__ as a variable', () => {
    const result = checkEnvironment(JSON.parse('{"__proto__":"x"}'));
    expect(result.verdict === 'accepted' && Object.keys(result.environment)).toEqual(['__proto__']);
  });
});

function mixed(word: string): string {
  return [...word].map((letter, at) => (at % 2 === 0 ? letter.toLowerCase() : letter)).join('');
}

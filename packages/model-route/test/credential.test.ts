import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CredentialFilter, credentialForms, credentialHeader, decideAnswer, holdsCredential, isCredential } from '../src/index.ts';

const SECRET = 'sk-host-0123456789/abc+def="XYZ';
const bytes = (text: string) => new TextEncoder().encode(text);
const filtered = (text: string, cuts: readonly number[]): { out: string; found: number } => {
  const filter = new CredentialFilter([SECRET]);
  const all = bytes(text);
  const parts: Uint8Array[] = [];
  for (let at = 0, index = 0; at < all.length; index += 1) {
    const length = cuts[index % cuts.length] ?? 1;
    parts.push(filter.push(all.slice(at, at + length)).slice());
    at += length;
  }
  parts.push(filter.end());
  return { out: parts.map((part) => new TextDecoder('latin1').decode(part)).join(''), found: filter.found };
};

/** Spellings made by others than the code under test. */
const SPELLINGS: Readonly<Record<string, string>> = {
  'as it is': SECRET,
  base64: Buffer.from(SECRET).toString('base64'),
  'base64 of a header': Buffer.from(`user:${SECRET}`).toString('base64'),
  'base64 after one byte': Buffer.from(`x${SECRET}yz`).toString('base64'),
  'base64 after two bytes': Buffer.from(`xy${SECRET}z`).toString('base64'),
  base64url: Buffer.from(`${SECRET}?>`).toString('base64url'),
  hex: Buffer.from(SECRET).toString('hex'),
  'hex in upper case': Buffer.from(SECRET).toString('hex').toUpperCase(),
  'URL-encoded': encodeURIComponent(SECRET),
  'URL-encoded as a form': new URLSearchParams({ a: SECRET }).toString().slice(2),
  'URL-encoded byte by byte': Buffer.from(SECRET).toString('hex').replace(/../g, '%$&'),
  'in JSON': JSON.stringify({ a: SECRET }),
  'in JSON with every escape': [...SECRET].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
};

describe('a credential in an answer', () => {
  it.each(Object.entries(SPELLINGS))('%s is taken out, wherever the answer is cut, and its length stays', (_name, spelling) => {
    const text = `before ${spelling} after`;
    expect(credentialForms(SECRET).some((form) => text.includes(form))).toBe(true);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }), (cuts) => {
        const { out, found } = filtered(text, cuts);
        expect(out).toHaveLength(text.length);
        expect(found).toBeGreaterThan(0);
        expect(credentialForms(SECRET).filter((form) => out.includes(form))).toEqual([]);
        expect(out.startsWith('before ') && out.endsWith(' after')).toBe(true);
      }),
    );
  });

  it('is found by nothing but a whole one: every other byte passes as it is', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('sk-host-', 's', SECRET.slice(0, -1), '\n', 'data: ', 'é'), { maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (words, cuts) => {
          const text = words.join('');
          fc.pre(!text.includes(SECRET));
          expect(filtered(text, cuts)).toEqual({ out: new TextDecoder('latin1').decode(bytes(text)), found: 0 });
        },
      ),
    );
  });

  it('holds nothing back of a chunk that cannot begin one', () => {
    const filter = new CredentialFilter([SECRET]);
    const event = bytes('data: {"text":"hello"}\n\n');
    expect(filter.push(event)).toEqual(event);
  });

  it('takes its header with it', () => {
    const raw = [
      'Content-Type',
      'application/json',
      'X-Request-Id',
      `id-${SECRET}`,
      'Set-Cookie',
      'a=b',
      'Connection',
      'close',
      'Location',
      `/?k=${encodeURIComponent(SECRET)}`,
    ];
    expect(decideAnswer(raw, (value) => holdsCredential(value, [SECRET]))).toEqual({
      verdict: 'allowed',
      reason: 'listed',
      headers: [['content-type', 'application/json']],
      isEventStream: false,
    });
  });

  it('could hide in an encoded answer, which is refused', () => {
    expect(decideAnswer(['Content-Encoding', 'gzip'], () => false)).toMatchObject({
      verdict: 'refused',
      reason: 'upstream_answer_refused',
    });
  });
});

describe('a credential', () => {
  it.each([
    ['anthropic_messages', 'sk-ant-api03-x', ['x-api-key', 'sk-ant-api03-x']],
    ['anthropic_messages', 'sk-ant-oat01-x', ['authorization', 'Bearer sk-ant-oat01-x']],
    ['openai_responses', 'sk-12345678', ['authorization', 'Bearer sk-12345678']],
    ['openai_chat', 'sk-12345678', ['authorization', 'Bearer sk-12345678']],
    ['gemini', 'AIza12345678', ['x-goog-api-key', 'AIza12345678']],
  ] as const)('of %s is shown as the format has it', (format, credential, header) => {
    expect(credentialHeader(format, credential)).toEqual(header);
    expect(credentialHeader(format, credential, { name: 'x-own', prefix: 'Key ' })).toEqual(['x-own', `Key ${credential}`]);
  });

  it.each(['', 'short', 'has a space in it', 'two\nlines-of-it', 'é'.repeat(10), 'x'.repeat(8_193)])('%j is none', (text) => {
    expect(isCredential(text)).toBe(false);
  });
});

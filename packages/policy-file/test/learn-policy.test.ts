import { decideReach, parseOperatorPolicy } from '@firecrew/egress-policy';
import { describe, expect, it } from 'vitest';
import { type LearnedEntry, learnPolicy, parsePolicyText } from '../src/index.ts';

const FILE = `# Reviewed by the platform team.
version: 1
preset: named
ceiling:
  run: [.example.com] # ours
missions:
  run: [api.example.com]
`;
const run = (...entries: string[]): LearnedEntry[] => entries.map((entry) => ({ part: 'run', entry }));
const setup = (...entries: string[]): LearnedEntry[] => entries.map((entry) => ({ part: 'setup', entry }));

/** What a mission that asks for `asked` may reach by the text of a policy. */
function verdict(text: string, part: 'setup' | 'run', host: string, port: number, asked: readonly string[]): string {
  const parsed = parseOperatorPolicy(parsePolicyText(text, 'p.yaml'));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const request = {
    backend: 'command',
    backendHosts: [],
    asked: { setup: part === 'setup' ? asked : [], run: part === 'run' ? asked : [] },
  };
  return decideReach({ policy: parsed.policy, request, part, host, port }).verdict;
}

describe('a policy that learned what a mission was refused', () => {
  it('has a rule for missions that ask for it, and keeps comments and order', () => {
    const { text, rules } = learnPolicy(FILE, 'p.yaml', {
      rule: 'learned',
      entries: [...run('docs.example.com'), ...setup('a.example.net:8080/tcp')],
    });
    expect(rules).toEqual([
      { name: 'learned-setup', part: 'setup', entries: ['a.example.net:8080/tcp'] },
      { name: 'learned', part: 'run', entries: ['docs.example.com'] },
    ]);
    expect(text.startsWith('# Reviewed by the platform team.\nversion: 1\n')).toBe(true);
    expect(text).toContain('  run: [.example.com] # ours\n');
    expect(verdict(text, 'run', 'docs.example.com', 443, ['rule:learned'])).toBe('allowed');
    expect(verdict(text, 'run', 'docs.example.com', 443, [])).toBe('denied');
    expect(verdict(text, 'setup', 'a.example.net', 8080, ['rule:learned-setup'])).toBe('allowed');
    expect(verdict(text, 'run', 'a.example.net', 8080, ['rule:learned'])).toBe('denied');
  });

  it('takes a name that every object has for a new rule, and refuses one that no policy may have', () => {
    const text = 'version: 1\npreset: named\nrules: { other: { allow: [] } }\n';
    expect(learnPolicy(text, 'p.yaml', { rule: 'constructor', entries: run('a.example') }).rules).toEqual([
      { name: 'constructor', part: 'run', entries: ['a.example'] },
    ]);
    for (const rule of ['9lives', '__proto__', ''])
      expect(() => learnPolicy(text, 'p.yaml', { rule, entries: run('a.example') })).toThrowError(
        expect.objectContaining({ code: 'policy_rule_taken' }),
      );
  });

  it('has its own ceiling raised by what that did not cover, and by no more', () => {
    const { text } = learnPolicy(FILE, 'p.yaml', { rule: 'learned', entries: run('docs.example.com', 'b.example.net:8443') });
    expect(parsePolicyText(text, 'p.yaml').ceiling).toEqual({ run: ['.example.com', 'b.example.net:8443'] });
    expect(verdict(text, 'run', 'b.example.net', 8443, ['rule:learned'])).toBe('allowed');
    expect(verdict(text, 'run', 'b.example.net', 443, ['rule:learned', 'b.example.net'])).toBe('denied');
    expect(verdict(text, 'run', 'c.example.net', 443, ['c.example.net'])).toBe('denied');
  });

  it('is the same when it learns the same again, and adds to its rule what is new', () => {
    const once = learnPolicy(FILE, 'p.yaml', { rule: 'learned', entries: run('docs.example.com') });
    expect(learnPolicy(once.text, 'p.yaml', { rule: 'learned', entries: run('docs.example.com') }).text).toBe(once.text);
    const twice = learnPolicy(once.text, 'p.yaml', { rule: 'learned', entries: run('wiki.example.com', 'docs.example.com') });
    expect(parsePolicyText(twice.text, 'p.yaml').rules).toEqual({
      learned: { parts: ['run'], allow: ['docs.example.com', 'wiki.example.com'] },
    });
  });

  it('begins with the least policy where there is no file, and with nothing to learn stays as it was', () => {
    const { before, text } = learnPolicy(undefined, 'new', { rule: 'learned', entries: run('docs.example.com') });
    expect(before).toBe('version: 1\npreset: named\n');
    expect(verdict(text, 'run', 'docs.example.com', 443, ['rule:learned'])).toBe('allowed');
    expect(learnPolicy(FILE, 'p.yaml', { rule: 'learned', entries: [] })).toEqual({ before: FILE, text: FILE, rules: [] });
  });

  it.each([
    ['a preset that lets nothing through', 'version: 1\npreset: locked\n', 'learned', 'policy_locked'],
    ['a rule of that name for both parts', 'version: 1\nrules: { learned: { allow: [a.example] } }\n', 'learned', 'policy_rule_taken'],
    ['a name that is none', FILE, 'A b', 'policy_rule_taken'],
    ['a file with a fault', 'version: 1\nceilng: {}\n', 'learned', 'policy_invalid'],
  ])('is refused for %s', (_what, text, rule, code) => {
    expect(() => learnPolicy(text, 'p.yaml', { rule, entries: run('docs.example.com') })).toThrow(expect.objectContaining({ code }));
  });
});

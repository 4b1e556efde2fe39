import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BOUNDS_REJECTED,
  checkCommand,
  checkCwd,
  checkSpawn,
  MAX_ARGUMENTS,
  MAX_ARGUMENTS_BYTES,
  MAX_STRING_BYTES,
  SPAWN_RULES,
  type SpawnDeclaration,
} from '../src/index.ts';

const good: SpawnDeclaration = {
  prompt: '/run/turn/prompt.md',
  schema: '/run/turn/schema.json',
  cwd: '/workspace/repo',
  environment: { LANG: 'C' },
  workFolder: '/workspace',
  dataFolder: '/var/lib/firecrew',
};
const policy = { promptFolder: '/run/turn' };
const ruleOf = (declared: SpawnDeclaration) => {
  const result = checkSpawn(declared, policy);
  return result.verdict === 'refused' ? result.rule : undefined;
};

describe('the six declarations of a start', () => {
  it('are returned as checked', () => {
    expect(checkSpawn({ ...good, cwd: '/workspace/./repo/' }, policy)).toEqual({
      verdict: 'accepted',
      prompt: '/run/turn/prompt.md',
      schema: '/run/turn/schema.json',
      cwd: '/workspace/repo',
      environment: { LANG: 'C' },
    });
  });

  it.each(
    [
      ['prompt', 'prompt_missing'],
      ['schema', 'schema_missing'],
      ['cwd', 'cwd_missing'],
      ['workFolder', 'work_folder_missing'],
      ['dataFolder', 'data_folder_missing'],
    ].flatMap(([field, rule]) => [undefined, null, '', 7, {}].map((value) => ({ field: field ?? '', rule, value }))),
  )('refuse $field of $value by $rule', ({ field, rule, value }) => {
    expect(ruleOf({ ...good, [field]: value })).toBe(rule);
  });

  it('refuse an environment that is not declared, unlike one that is empty', () => {
    expect([undefined, null].map((environment) => ruleOf({ ...good, environment }))).toEqual([
      'environment_missing',
      'environment_missing',
    ]);
    expect(ruleOf({ ...good, environment: 'A=1' })).toBe('environment_not_an_object');
    expect(ruleOf({ ...good, environment: {} })).toBeUndefined();
  });

  it('refuse prompt and schema in different directories, or outside their folder', () => {
    expect(ruleOf({ ...good, schema: '/run/turn/sub/schema.json' })).toBe('prompt_and_schema_apart');
    expect(ruleOf({ ...good, schema: '/run/turn/sub/../schema.json' })).toBeUndefined();
    expect(ruleOf({ ...good, prompt: '/etc/a', schema: '/etc/b' })).toBe('prompt_outside_folder');
    expect(ruleOf({ ...good, prompt: '/run/turn-evil/a', schema: '/run/turn-evil/b' })).toBe('prompt_outside_folder');
  });
});

describe('the working directory', () => {
  const check = (cwd: unknown, over: object = {}) => {
    const result = checkCwd({ cwd, workFolder: '/workspace', dataFolder: '/data', ...over });
    return result.verdict === 'refused' ? result.rule : result.cwd;
  };

  it.each([
    ['/workspace/a', '/workspace/a'],
    ['/workspace', '/workspace'],
    ['/workspace/', '/workspace'],
    ['/workspace/..', 'cwd_outside_work_folder'],
    ['/workspace/../x', 'cwd_outside_work_folder'],
    ['/workspace/..x', '/workspace/..x'],
    ['/workspace-evil', 'cwd_outside_work_folder'],
    ['/workspace/a/../../etc', 'cwd_outside_work_folder'],
    ['relative', 'cwd_not_absolute'],
    ['/workspace/a\0b', 'cwd_not_absolute'],
    [`/workspace/${'x'.repeat(4096)}`, 'cwd_not_absolute'],
  ])('%s gives %s', (cwd, expected) => {
    expect(check(cwd)).toBe(expected);
  });

  it('never lies in the data folder, whichever of the two folders holds the other', () => {
    expect(check('/workspace/data/x', { dataFolder: '/workspace/data' })).toBe('cwd_in_data_folder');
    expect(check('/workspace/data', { dataFolder: '/workspace/data' })).toBe('cwd_in_data_folder');
    expect(check('/workspace/database', { dataFolder: '/workspace/data' })).toBe('/workspace/database');
    expect(check('/data/workspace/x', { workFolder: '/data/workspace', dataFolder: '/data' })).toBe('cwd_in_data_folder');
  });

  it('contains no denied run of whole path parts', () => {
    const deniedParts = ['state/db', 'observer'];
    expect(check('/workspace/a/state/db/x', { deniedParts })).toBe('cwd_denied_part');
    expect(check('/workspace/observer', { deniedParts })).toBe('cwd_denied_part');
    expect(check('/workspace/state/x/db', { deniedParts })).toBe('/workspace/state/x/db');
    expect(check('/workspace/observers/mystate/db', { deniedParts })).toBe('/workspace/observers/mystate/db');
  });

  it('is inside the work folder whenever it is accepted', () => {
    const part = fc.constantFrom('..', '.', 'work', 'data', 'x', '', '..x');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const result = checkCwd({ cwd: `/workspace/${parts.join('/')}`, workFolder: '/workspace', dataFolder: '/workspace/data' });
        return (
          result.verdict === 'refused' ||
          (/^\/workspace(\/|$)/.test(result.cwd) && !/(^|\/)\.\.?(\/|$)/.test(result.cwd) && !/^\/workspace\/data(\/|$)/.test(result.cwd))
        );
      }),
    );
  });
});

describe('the command', () => {
  const ruleOfCommand = (argv: unknown) => {
    const result = checkCommand(argv);
    return result.verdict === 'refused' ? { rule: result.rule, subject: result.subject } : undefined;
  };

  it('is a copy of the list', () => {
    const argv = ['/bin/sh', '-c', 'true'];
    expect(checkCommand(argv)).toEqual({ verdict: 'accepted', argv });
  });

  it.each<[unknown, string, string | undefined]>([
    ['/bin/sh', 'command_not_a_list', undefined],
    [undefined, 'command_not_a_list', undefined],
    [[], 'command_missing', undefined],
    [['', 'x'], 'command_missing', undefined],
    [['a', 7], 'command_not_a_string', '1'],
    [['a', 'b\0c'], 'command_nul', '1'],
  ])('%j is refused by %s', (argv, rule, subject) => {
    expect(ruleOfCommand(argv)).toEqual({ rule, subject });
  });

  it('is bounded by argument, number and sum at the edge, in bytes', () => {
    expect(ruleOfCommand(['a', 'é'.repeat((MAX_STRING_BYTES - 1) / 2)])).toBeUndefined();
    expect(ruleOfCommand(['a', 'x'.repeat(MAX_STRING_BYTES)])).toBeUndefined();
    expect(ruleOfCommand(['a', 'x'.repeat(MAX_STRING_BYTES + 1)])).toEqual({ rule: 'command_too_large', subject: '1' });
    expect(ruleOfCommand(['a', 'é'.repeat((MAX_STRING_BYTES + 1) / 2)])).toEqual({ rule: 'command_too_large', subject: '1' });
    expect(ruleOfCommand(Array.from({ length: MAX_ARGUMENTS }, () => 'x'))).toBeUndefined();
    expect(ruleOfCommand(Array.from({ length: MAX_ARGUMENTS + 1 }, () => 'x'))?.rule).toBe('command_too_many');
    const full = (extra: number) =>
      Array.from({ length: 16 }, (_, at) => 'x'.repeat(MAX_ARGUMENTS_BYTES / 16 - 1 + (at === 15 ? extra : 0)));
    expect(ruleOfCommand(full(0))).toBeUndefined();
    expect(ruleOfCommand(full(1))).toEqual({ rule: 'command_too_large', subject: '15' });
  });
});

describe('what others can see', () => {
  it('is fixed: the code and the rules', () => {
    expect(BOUNDS_REJECTED).toBe('bounds_rejected');
    expect(SPAWN_RULES).toHaveLength(28);
    expect(new Set(SPAWN_RULES).size).toBe(SPAWN_RULES.length);
    expect([MAX_STRING_BYTES, MAX_ARGUMENTS, MAX_ARGUMENTS_BYTES]).toEqual([131_071, 4096, 1_048_576]);
  });
});

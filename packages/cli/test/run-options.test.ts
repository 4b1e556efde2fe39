import { describe, expect, it } from 'vitest';
import { matchId } from '../src/run/find-mission.ts';
import { DURATION_MAX_MS, parseDuration } from '../src/run/parse-duration.ts';
import { isRepositoryUrl, readAddressRules, readRunOptions, titleOf } from '../src/run/run-options.ts';

const GOOD = { repo: '.', task: 'do it', agentCmd: 'agent' };

/** [what is wrong, the options beside good ones, words of the message] */
const WRONG: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
  ['no repository', { repo: undefined }, /no repository/],
  ['no task', { task: undefined }, /no task/],
  ['a blank task', { task: ' \n' }, /no task/],
  ['two tasks', { taskFile: 'f' }, /both --task/],
  ['no agent', { agentCmd: undefined }, /no agent/],
  ['a blank agent', { agentCmd: ' ' }, /no agent/],
  ['a branch of a folder', { branch: 'main' }, /HEAD/],
  ['a branch of nothing', { repo: false, branch: 'main' }, /--branch/],
  ['a push of nothing', { repo: false, push: 'origin' }, /--push/],
  ['files of a URL', { repo: 'https://h/r', include: ['a'] }, /folder/],
  ['an ssh URL', { repo: 'ssh://git@h/r' }, /^ssh URLs are not supported yet/],
  ['an ssh URL as git writes it', { repo: 'git@h:r.git' }, /^ssh URLs are not supported yet/],
  ['a URL without TLS', { repo: 'http://h/r' }, /^http URLs are not supported yet/],
  ['an input without a recipe', { input: ['measure=x'] }, /--recipe/],
  ['an input without a name', { recipe: 'change', input: ['x'] }, /NAME=TEXT/],
  ['an input twice', { recipe: 'change', input: ['a=1', 'a=2'] }, /twice/],
  ['an input that is an option', { recipe: 'change', input: ['task=x'] }, /option of its own/],
  ['a recipe with --allow-empty', { recipe: 'change', allowEmpty: true }, /--allow-empty/],
  ['a duration without a unit', { timeout: '30' }, /--timeout "30"/],
  ['a duration of nothing', { checkTimeout: '0s' }, /--check-timeout/],
  [
    'a layer of a path that leaves the tree',
    { setupLayer: ['../package.json'] },
    /--setup-layer "\.\.\/package\.json": must be a relative path/,
  ],
  ['a layer of an absolute path', { setupLayer: ['a', '/etc/passwd'] }, /--setup-layer "\/etc\/passwd"/],
  ['credentials of no learning run', { learnWithCredentials: true }, /--learn-with-credentials is for a learning run/],
  ['a learning run under a seat', { learn: true, seat: 'coder' }, /--seat would give it credentials/],
  ['a learning run with secrets and a push', { learn: true, includeSecret: ['.env'], push: 'origin' }, /--include-secret and --push/],
  ['a layer of no set-up', { setupLayer: ['a'], setup: false }, /--no-setup runs none/],
  ['a duration that is too long', { setupTimeout: '8d' }, /--setup-timeout/],
  ['an address rule without an address', { allowAddress: ['host'] }, /HOST=ADDRESS/],
  ['an address rule with a name', { allowAddress: ['host=other'] }, /HOST=ADDRESS/],
  ['an address rule with a port', { allowAddress: ['host:1=10.0.0.1'] }, /HOST=ADDRESS/],
];

describe('the options of a run', () => {
  it.each(WRONG)('refuse %s', (_what, options, message) => {
    expect(() => readRunOptions({ ...GOOD, ...options }, {})).toThrow(message);
  });

  it('take a recipe with its inputs', () => {
    expect(readRunOptions({ ...GOOD, recipe: 'measured-change', input: ['measure=a=b\nc'] }, {}).recipe).toEqual({
      name: 'measured-change',
      inputs: { measure: 'a=b\nc' },
    });
  });

  it('let a learning run have credentials where that was said', () => {
    expect(readRunOptions({ ...GOOD, learn: true }, {}).learn).toEqual({ withCredentials: false });
    expect(readRunOptions({ ...GOOD, learn: true, learnWithCredentials: true, seat: 'coder', push: 'origin' }, {}).learn).toEqual({
      withCredentials: true,
    });
    expect(readRunOptions(GOOD, {}).learn).toBeUndefined();
  });

  it('name the files of a layer by their path in the tree', () => {
    const { setupLayerFiles } = readRunOptions({ ...GOOD, setupLayer: ['package.json', './web/package-lock.json'] }, {});
    expect(setupLayerFiles).toEqual(['package.json', 'web/package-lock.json']);
    expect(readRunOptions(GOOD, {}).setupLayerFiles).toEqual([]);
  });

  it('have defaults', () => {
    expect(readRunOptions(GOOD, {})).toMatchObject({
      repository: { kind: 'path', path: '.' },
      setup: 'detect',
      wait: true,
      allowUnisolated: false,
      needsModelRoute: false,
      driver: undefined,
      timeoutMs: undefined,
    });
  });

  it.each([
    [{ allowUnisolated: true }, {}, true],
    [{}, { FIRECREW_ALLOW_UNISOLATED: '1' }, true],
    [{}, { FIRECREW_ALLOW_UNISOLATED: '0' }, false],
    [{}, { FIRECREW_ALLOW_UNISOLATED: '' }, false],
  ])('allow what is not isolated by flag or environment only: %j %j', (flags, env, allowed) => {
    expect(readRunOptions({ ...GOOD, ...flags }, env).allowUnisolated).toBe(allowed);
  });

  it('gather the addresses of one host', () => {
    expect(readAddressRules(['a.example=10.0.0.1', 'B=::1', 'a.example=10.1.0.0/16'])).toEqual([
      { host: 'a.example', addresses: ['10.0.0.1', '10.1.0.0/16'] },
      { host: 'b', addresses: ['::1'] },
    ]);
  });

  it.each([
    ['https://h/r.git', true],
    ['ssh://git@h/r', true],
    ['git@h:r.git', true],
    ['file:///r', true],
    ['./a:b', false],
    ['/srv/a', false],
    ['a', false],
  ])('tell a URL from a folder: %s', (text, url) => {
    expect(isRepositoryUrl(text)).toBe(url);
  });

  it.each([
    ['Fix it\nmore', 'Fix it'],
    ['\n\n## Fix it ', 'Fix it'],
    ['x'.repeat(300), 'x'.repeat(200)],
    ['  ', 'untitled'],
  ])('take the title from the task: %j', (task, title) => {
    expect(titleOf(task)).toBe(title);
  });

  it.each([
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['1ms', 1],
    ['7d', DURATION_MAX_MS],
    ['7d1ms', undefined],
    ['0s', undefined],
    ['-1s', undefined],
    ['1.5h', undefined],
    ['30', undefined],
    ['', undefined],
    ['1h ', undefined],
  ])('read durations: %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });
});

describe('an id', () => {
  const ids = ['msn_00000000aaaa1234', 'msn_00000000bbbb1234', 'msn_00000000cccc5678'];
  it.each([
    ['5678', ids[2]],
    ['aaaa1234', ids[0]],
    ['BBBB1234', ids[1]],
    [ids[1] ?? '', ids[1]],
  ])('is found by %s', (text, id) => {
    expect(matchId(text, ids)).toBe(id);
  });
  it.each([
    ['1234', /the end of 2 ids/],
    ['9999', /there is no mission/],
    ['78', /too short/],
  ])('is refused for %s', (text, message) => {
    expect(() => matchId(text, ids)).toThrow(message);
  });
});

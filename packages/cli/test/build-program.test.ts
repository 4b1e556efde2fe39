import { CommanderError } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram, type Invocation } from '../src/build-program.ts';
import { COMMAND_NAMES } from '../src/dispatch.ts';

function parse(...args: string[]): Invocation {
  let found: Invocation | undefined;
  const program = buildProgram('1.2.3', (invocation) => {
    found = invocation;
  });
  silence(program);
  program.parse(args, { from: 'user' });
  if (found === undefined) throw new Error('no command was called');
  return found;
}

function silence(command: ReturnType<typeof buildProgram>): void {
  command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  for (const one of command.commands) silence(one);
}

/** [the words, the command, its arguments, options among others] */
const CALLS: readonly (readonly [string, string, readonly string[], Record<string, unknown>])[] = [
  ['up --listen 127.0.0.1:70 --json', 'up', [], { listen: '127.0.0.1:70', json: true }],
  ['down --force', 'down', [], { force: true, json: false }],
  ['status', 'status', [], { json: false }],
  ['show abcd --json', 'show', ['abcd'], { json: true }],
  ['logs abcd -f', 'logs', ['abcd'], { follow: true }],
  ['events abcd --after 7', 'events', ['abcd'], { after: '7', follow: false }],
  ['fetch abcd --push origin', 'fetch', ['abcd'], { push: 'origin', pushDirty: false }],
  ['artifacts abcd --download out', 'artifacts', ['abcd'], { download: 'out' }],
  ['node token --json', 'node token', [], { json: true }],
  ['node join https://h --token t --name n', 'node join', ['https://h'], { token: 't', name: 'n' }],
  ['node drain n', 'node drain', ['n'], { json: false }],
  ['node undrain n --json', 'node undrain', ['n'], { json: true }],
  ['recipe list', 'recipe list', [], { json: false }],
  ['recipe show change', 'recipe show', ['change'], { json: false }],
  ['supervise', 'supervise', [], {}],
  ['up --policy p.yaml', 'up', [], { policy: 'p.yaml' }],
  ['policy check a.example:8443 --mission abcd --phase setup', 'policy check', ['a.example:8443'], { mission: 'abcd', phase: 'setup' }],
  [
    'policy check a.example --policy p --allow a --allow b',
    'policy check',
    ['a.example'],
    { policy: 'p', phase: 'run', allow: ['a', 'b'] },
  ],
  ['policy audit abcd', 'policy audit', ['abcd'], {}],
  ['policy explain abcd --json', 'policy explain', ['abcd'], { json: true }],
  ['image build', 'image build', [], { keepOwners: false, package: [] }],
  ['image build tools --from d --package a --package b', 'image build', ['tools'], { from: 'd', package: ['a', 'b'] }],
  ['image kernel --from k --modules m', 'image kernel', [], { from: 'k', modules: 'm' }],
  ['seat link coder --turns 2', 'seat link', ['coder'], { turns: '2', json: false }],
  ['seat mint a b --dry-run', 'seat mint', ['a', 'b'], { dryRun: true }],
  ['seat mint', 'seat mint', [], { dryRun: false }],
  ['seat whoami coder', 'seat whoami', ['coder'], {}],
  ['run --seat coder', 'run', [], { seat: 'coder' }],
  ['image payload --level 3', 'image payload', [], { level: '3' }],
  ['image list --json', 'image list', [], { json: true }],
  ['image verify a b', 'image verify', ['a', 'b'], { json: false }],
  ['image verify', 'image verify', [], {}],
  ['image export a -o f', 'image export', ['a'], { output: 'f' }],
  ['image import f --name n --expect i', 'image import', ['f'], { name: 'n', expect: 'i' }],
  ['image gc --grace 1h', 'image gc', [], { grace: '1h' }],
  ['image remove a', 'image remove', ['a'], {}],
  [
    'run --repo . --task t --allow a --allow b:8443',
    'run',
    [],
    { repo: '.', task: 't', allow: ['a', 'b:8443'], wait: true, agentFile: [] },
  ],
  ['run --no-repo --no-wait --no-setup', 'run', [], { repo: false, wait: false, setup: false }],
  ['run --driver process --push-dirty', 'run', [], { driver: 'process', pushDirty: true }],
];

describe('the command line', () => {
  it.each(CALLS)('reads %s', (words, command, args, options) => {
    const found = parse(...words.split(' '));
    expect(found).toMatchObject({ command, args, options });
  });

  it('takes the home before the command', () => {
    expect(parse('--home', '/x', 'status').home).toBe('/x');
  });

  it.each([
    'nothing-like-this',
    'up --nope',
    'show',
    'show a b',
    'node join https://h',
    'run --driver magic',
    'image kernel',
    'image export a',
    'image build a b',
    'image build --arch x',
    'seat revoke',
    'seat link',
    '',
  ])('refuses %j', (words) => {
    expect(() => parse(...words.split(' ').filter((word) => word !== ''))).toThrow(CommanderError);
  });

  it('has something to carry out for every command', () => {
    const program = buildProgram('1', () => undefined);
    const names = program.commands.flatMap((one) =>
      one.commands.length === 0 ? [one.name()] : one.commands.map((sub) => `${one.name()} ${sub.name()}`),
    );
    expect([...names].sort()).toEqual([...COMMAND_NAMES].sort());
  });

  it('does not show the command that only firecrew itself calls', () => {
    expect(buildProgram('1', () => undefined).helpInformation()).not.toContain('supervise');
  });
});

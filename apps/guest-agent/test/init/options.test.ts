import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, buildHarness, noHarness } from './support/harness.ts';

let folder = '';
let harness = '';
beforeAll(() => {
  if (noHarness !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'fc-init-'));
  harness = buildHarness(folder);
});
afterAll(() => {
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

const why = noHarness === undefined ? '' : ` (not run: ${noHarness})`;
const options = (...lines: string[]): string[] => ask(harness, ['options'], `${lines.join('\n')}\n`);

const BASE = 'firecrew.base=serial:b';
const PAYLOAD = 'firecrew.payload=label:p';
const SCRATCH = 'firecrew.scratch=serial:s';
const LINK = 'firecrew.link=virtio:firecrew.link.0';
const ALL = [BASE, PAYLOAD, SCRATCH, LINK];
const without = (word: string): string => ALL.filter((other) => other !== word).join(' ');
const withWord = (word: string): string => {
  const key = word.slice(0, word.indexOf('=') + 1);
  return [...ALL.filter((other) => !other.startsWith(key)), word].join(' ');
};

describe.skipIf(noHarness !== undefined)(`the kernel command line${why}`, () => {
  it.each([
    {
      what: 'each key once',
      line: ALL.join(' '),
      gives: 'base=serial:b scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=0',
    },
    {
      what: 'the words of others in between, quotes of theirs too',
      line: `console=ttyS0 quiet a="x ${BASE} y" ${ALL.join('\t ')} firecrewish.base=1 init=/x`,
      gives: 'base=serial:b scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=0',
    },
    {
      what: 'a scratch in memory',
      line: withWord('firecrew.scratch=tmpfs'),
      gives: 'base=serial:b scratch=tmpfs payload=label:p link=virtio:firecrew.link.0:0 rescue=0',
    },
    {
      what: 'a rescue',
      line: `${ALL.join(' ')} firecrew.rescue=1`,
      gives: 'base=serial:b scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=1',
    },
    {
      what: 'a layer, in a rescue too',
      line: `firecrew.layer=serial:l ${ALL.join(' ')} firecrew.rescue=1`,
      gives: 'base=serial:b scratch=serial:s payload=label:p layer=serial:l link=virtio:firecrew.link.0:0 rescue=1',
    },
    {
      what: 'a layer below memory',
      line: `${withWord('firecrew.scratch=tmpfs')} firecrew.layer=label:l`,
      gives: 'base=serial:b scratch=tmpfs payload=label:p layer=label:l link=virtio:firecrew.link.0:0 rescue=0',
    },
    {
      what: 'the largest vsock port',
      line: withWord('firecrew.link=vsock:4294967294'),
      gives: 'base=serial:b scratch=serial:s payload=label:p link=vsock::4294967294 rescue=0',
    },
    {
      what: 'a Unix socket of 107 bytes',
      line: withWord(`firecrew.link=unix:/${'a'.repeat(106)}`),
      gives: `base=serial:b scratch=serial:s payload=label:p link=unix:/${'a'.repeat(106)}:0 rescue=0`,
    },
    {
      what: 'a serial of 20 bytes',
      line: withWord(`firecrew.base=serial:${'a'.repeat(20)}`),
      gives: `base=serial:${'a'.repeat(20)} scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=0`,
    },
    {
      what: 'a label of 16 bytes',
      line: withWord(`firecrew.base=label:${'a'.repeat(16)}`),
      gives: `base=label:${'a'.repeat(16)} scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=0`,
    },
    {
      what: 'a serial and a label of one text',
      line: withWord('firecrew.base=serial:p'),
      gives: 'base=serial:p scratch=serial:s payload=label:p link=virtio:firecrew.link.0:0 rescue=0',
    },
  ])('takes $what', ({ line, gives }) => {
    expect(options(line)).toEqual([gives]);
  });

  it.each([
    { what: 'nothing', line: '', says: 'a key is missing: base' },
    { what: 'no base', line: without(BASE), says: 'a key is missing: base' },
    { what: 'no payload', line: without(PAYLOAD), says: 'a key is missing: payload' },
    { what: 'no scratch', line: without(SCRATCH), says: 'a key is missing: scratch' },
    { what: 'no link', line: without(LINK), says: 'a key is missing: link' },
    { what: 'a key twice', line: `${ALL.join(' ')} ${BASE}`, says: 'given twice: firecrew.base' },
    { what: 'an unknown key', line: `${ALL.join(' ')} firecrew.bases=1`, says: 'an unknown key: firecrew.bases' },
    { what: 'a key in capitals', line: `${ALL.join(' ')} firecrew.BASE=serial:b`, says: 'an unknown key: firecrew.BASE' },
    { what: 'no key', line: `${ALL.join(' ')} firecrew.=1`, says: 'an unknown key: firecrew.' },
    { what: 'a word without a value', line: `${ALL.join(' ')} firecrew.rescue`, says: 'a word without a value: firecrew.rescue' },
    { what: 'a bare prefix', line: `${ALL.join(' ')} firecrew.`, says: 'a word without a value: firecrew.' },
    {
      what: 'a word of 256 bytes',
      line: `firecrew.base=${'a'.repeat(242)}`,
      says: `a word that is too long: firecrew.base=${'a'.repeat(186)}`,
    },
    {
      what: 'a word of 90,000 bytes',
      line: `firecrew.${'a'.repeat(90_000)}`,
      says: `a word that is too long: firecrew.${'a'.repeat(191)}`,
    },
    { what: 'a quoted word', line: `"${BASE}" ${ALL.join(' ')}`, says: `a quoted word: "${BASE}"` },
    { what: 'a quote in a word', line: withWord('firecrew.base="serial:b"'), says: 'a value of another form: firecrew.base' },
    { what: 'a quote that never ends', line: `a="b ${ALL.join(' ')}`, says: 'a key is missing: base' },
    { what: 'another rescue than 1', line: `${ALL.join(' ')} firecrew.rescue=0`, says: 'a value of another form: firecrew.rescue' },
    {
      what: 'a rescue from memory',
      line: `${withWord('firecrew.scratch=tmpfs')} firecrew.rescue=1`,
      says: 'nothing to rescue from: scratch=tmpfs',
    },
    { what: 'one disk as base and payload', line: withWord('firecrew.payload=serial:b'), says: 'two disks of one name: b' },
    { what: 'one disk as base and scratch', line: withWord('firecrew.scratch=serial:b'), says: 'two disks of one name: b' },
    { what: 'one disk as base and layer', line: `${ALL.join(' ')} firecrew.layer=serial:b`, says: 'two disks of one name: b' },
    { what: 'one disk as payload and layer', line: `${ALL.join(' ')} firecrew.layer=label:p`, says: 'two disks of one name: p' },
    { what: 'one disk as scratch and layer', line: `${ALL.join(' ')} firecrew.layer=serial:s`, says: 'two disks of one name: s' },
    { what: 'a layer in memory', line: `${ALL.join(' ')} firecrew.layer=tmpfs`, says: 'a value of another form: firecrew.layer' },
    {
      what: 'a layer twice',
      line: `${ALL.join(' ')} firecrew.layer=serial:l firecrew.layer=serial:m`,
      says: 'given twice: firecrew.layer',
    },
    { what: 'one disk as payload and scratch', line: withWord('firecrew.scratch=label:p'), says: 'two disks of one name: p' },
  ])('with $what is refused', ({ line, says }) => {
    expect(options(line)).toEqual([`refused: ${says}`]);
  });

  it.each([
    ...[
      '',
      'serial:',
      'label:',
      '/dev/vda',
      'serial',
      'uuid:1',
      'SERIAL:b',
      'serial:a/b',
      'serial:\x01',
      'serial:\xff',
      'serial:a,b',
      'serial:%s',
      'tmpfs',
    ],
    ...[`serial:${'a'.repeat(21)}`, `label:${'a'.repeat(17)}`],
  ])('has no disk %j', (value) => {
    const [refusal] = options(withWord(`firecrew.base=${value}`));
    expect(refusal).toMatch(/^refused: /);
  });

  it.each([
    ...[
      '',
      'virtio:',
      'virtio:a/b',
      `virtio:${'a'.repeat(64)}`,
      'vsock:',
      'vsock:0',
      'vsock:01',
      'vsock:-1',
      'vsock:+1',
      'vsock:0x10',
      'vsock:1x',
    ],
    ...['vsock:4294967295', 'vsock:4294967296', 'vsock:99999999999999999999', 'unix:', 'unix:a', `unix:/${'a'.repeat(107)}`, 'tcp:1'],
  ])('has no link %j', (value) => {
    const line = withWord(`firecrew.link=${value}`);
    expect(options(line)[0]).toBe('refused: a value of another form: firecrew.link');
  });

  it('takes any line without a fault, and accepts none that lacks a key or has one twice', () => {
    const word = fc.oneof(
      fc.constantFrom(...ALL, 'firecrew.rescue=1', 'firecrew.scratch=tmpfs', 'firecrew.', '"', '=', 'quiet'),
      fc.string({ maxLength: 300 }).map((text) => text.replace(/[\n\0]/g, '?')),
      fc.constantFrom(...ALL).chain((text) => fc.nat(text.length).map((at) => `${text.slice(0, at)}"${text.slice(at)}`)),
    );
    const lines = fc.sample(
      fc
        .tuple(fc.shuffledSubarray(ALL, { minLength: 3 }), fc.array(word, { maxLength: 2 }), fc.boolean())
        .map(([wanted, others, first]) => (first ? [...others, ...wanted] : [...wanted, ...others]).join(' ')),
      { numRuns: 3000, seed: 20_261_130 },
    );
    const answers = options(...lines);
    expect(answers.length).toBe(lines.length);
    const accepted = lines.filter((_line, index) => answers[index]?.startsWith('refused: ') === false);
    expect(accepted.length).toBeGreaterThan(0);
    for (const line of accepted) {
      const words = line.match(/(?:"[^"]*"?|[^ \t\r"])+/g) ?? [];
      const keys = words.flatMap((one) => /^firecrew\.([a-z]*)=/.exec(one)?.[1] ?? []).filter((key) => key !== 'rescue');
      expect(keys.sort(), line).toEqual(['base', 'link', 'payload', 'scratch']);
    }
  });
});

describe.skipIf(noHarness !== undefined)(`the payload's run file${why}`, () => {
  it('gives one argument per line, spaces and all', () => {
    expect(ask(harness, ['run-file'], '/opt/firecrew/ld.so\n--library-path\na b\n')).toEqual([
      '/opt/firecrew/ld.so',
      '--library-path',
      'a b',
    ]);
  });

  it.each([
    { what: 'is empty', text: '', says: 'is empty' },
    { what: 'ends in the middle of a line', text: '/a\n/b', says: 'does not end with a line end' },
    { what: 'holds an empty line', text: '/a\n\n', says: 'holds an empty line' },
    { what: 'holds a NUL', text: '/a\0b\n', says: 'holds a control character' },
    { what: 'holds a carriage return', text: '/a\r\n', says: 'holds a control character' },
    { what: 'begins with a relative path', text: 'a\n', says: 'begins with no absolute path' },
    { what: 'holds 63 lines', text: '/a\n'.repeat(63), says: 'has too many lines' },
  ])('is refused when it $what', ({ text, says }) => {
    expect(ask(harness, ['run-file'], text)).toEqual([`refused: /opt/firecrew/run ${says}`]);
  });

  it('may hold 62 lines', () => {
    expect(ask(harness, ['run-file'], '/a\n'.repeat(62)).length).toBe(62);
  });
});

describe.skipIf(noHarness !== undefined)(`a disk${why}`, () => {
  const bytesWith = (...parts: readonly (readonly [number, string | readonly number[]])[]): Buffer => {
    const bytes = Buffer.alloc(2048);
    for (const [at, part] of parts) bytes.set(typeof part === 'string' ? Buffer.from(part, 'latin1') : part, at);
    return bytes;
  };
  const hex = (text: string): string => Buffer.from(text, 'latin1').toString('hex');

  it.each([
    { what: 'squashfs', bytes: bytesWith([0, 'hsqs']), says: 'squashfs ' },
    { what: 'erofs', bytes: bytesWith([1024, [0xe2, 0xe1, 0xf5, 0xe0]], [1088, 'payload']), says: `erofs ${hex('payload')}` },
    { what: 'ext4', bytes: bytesWith([1080, [0x53, 0xef]], [1144, 'fc-scratch']), says: `ext4 ${hex('fc-scratch')}` },
    {
      what: 'ext4 with a label to its last byte',
      bytes: bytesWith([1080, [0x53, 0xef]], [1144, 'a'.repeat(40)]),
      says: `ext4 ${hex('a'.repeat(16))}`,
    },
    {
      what: 'ext4 with a label of any bytes',
      bytes: bytesWith([1080, [0x53, 0xef]], [1144, '\x1b[2J\xff']),
      says: `ext4 ${hex('\x1b[2J\xff')}`,
    },
    { what: 'nothing', bytes: bytesWith(), says: 'unknown ' },
    { what: 'bytes that are all ones', bytes: Buffer.alloc(2048, 0xff), says: 'unknown ' },
  ])('is known as $what', ({ bytes, says }) => {
    expect(ask(harness, ['superblock'], bytes)).toEqual([says]);
  });

  it.each([
    { name: 'serial:a', serial: 'a', label: '', is: 'yes' },
    { name: 'label:a', serial: '', label: 'a', is: 'yes' },
    { name: 'serial:a', serial: 'ab', label: 'a', is: 'no' },
    { name: 'serial:ab', serial: 'a', label: 'ab', is: 'no' },
    { name: 'label:a', serial: 'a', label: 'A', is: 'no' },
    { name: 'label:', serial: '', label: '', is: 'no' },
  ])('of serial $serial and label $label is $name: $is', ({ name, serial, label, is }) => {
    expect(ask(harness, ['disk', name, serial, label])).toEqual([is]);
  });
});

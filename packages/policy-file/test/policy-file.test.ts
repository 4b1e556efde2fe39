import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, messageOf } from '@firecrew/base';
import { formatAllowRule } from '@firecrew/egress-policy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPolicyFile, MAX_POLICY_BYTES, parsePolicyText, policyOfCeiling } from '../src/index.ts';

const GOOD = `
version: 1
preset: named
ceiling:
  run: [.example.com]
rules:
  packages: { parts: [setup], allow: [registry.example.org, { host: mirror.example, port: 8080, protocol: tcp }] }
backends:
  command:
    setup: [rule:packages]
    run: [api.example.com, api.example.net]
`;

function faultOf(text: string): string {
  try {
    parsePolicyText(text, 'p.yaml');
    return 'taken';
  } catch (error) {
    return `${codeOf(error)} ${messageOf(error)}`;
  }
}

describe('the text of a policy', () => {
  it('is read with its defaults', () => {
    expect(parsePolicyText('version: 1\n', 'p.yaml')).toEqual({ version: 1, preset: 'named' });
  });

  it.each([
    ['an unknown key at the top', 'version: 1\nceilng: {}\n', /^policy_invalid .*"ceilng"/],
    ['an unknown key deep down', 'version: 1\nbackends: { command: { runs: [a.example] } }\n', /backends\.command: .*"runs"/],
    ['an unknown key of an entry', 'version: 1\nmissions: { run: [{ host: a.example, ports: 1 }] }\n', /missions\.run\[0\]: /],
    ['a key twice', 'version: 1\npreset: open\npreset: locked\n', /line 3: Map keys must be unique/],
    ['another version', 'version: 2\n', /version: /],
    ['no version', 'preset: open\n', /version: /],
    ['a preset that is none', 'version: 1\npreset: wide\n', /preset: /],
    ['a tag that is not understood', 'version: 1\npreset: !mine open\n', /line 2: Unresolved tag/],
    ['no document', '', /\(top\): /],
    ['two documents', 'version: 1\n---\nversion: 1\n', /policy_invalid/],
    ['a part for nothing', 'version: 1\nrules: { a: { parts: [], allow: [] } }\n', /rules\.a\.parts: /],
    ['a merge key', 'x: &x {preset: open}\nversion: 1\n<<: *x\n', /"x"|"<<"/],
    ['aliases that grow', `version: 1\nmissions: { run: &a [${Array(150).fill('*a').join(', ')}] }\n`, /policy_invalid/],
    ['a ceiling that says nothing', 'version: 1\npreset: open\nceiling:\n', /ceiling: /],
    ['a part of the ceiling that says nothing', 'version: 1\npreset: open\nceiling: { run: }\n', /ceiling\.run: /],
    ['a part of learn that says nothing', 'version: 1\nlearn: { run: }\n', /learn\.run: /],
    ['a preset that says nothing', 'version: 1\npreset:\n', /preset: /],
    ['a rule whose name is of every object', 'version: 1\nrules: { __proto__: { allow: [a.example] } }\n', /no key may be "__proto__"/],
    ['a host that is a number', 'version: 1\nmissions: { run: [127.1] }\n', /missions\.run\[0\]: /],
    ['a port that is a text', 'version: 1\nmissions: { run: [{ host: a.example, port: "443" }] }\n', /missions\.run\[0\]: /],
    ['a third protocol', 'version: 1\nmissions: { run: [{ host: a.example, port: 53, protocol: udp }] }\n', /missions\.run\[0\]: /],
    ['a set as a list', 'version: 1\nmissions: { run: !!set { a.example } }\n', /missions\.run: /],
    ['more bytes than the bound', `version: 1\n#${'x'.repeat(MAX_POLICY_BYTES)}\n`, /more than 262144 bytes/],
  ])('with %s is refused, with its place', (_what, text, expected) => {
    expect(faultOf(text)).toMatch(expected);
  });
});

describe('the file of a policy', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-policy-'));
  });
  afterAll(async () => rm(folder, { recursive: true, force: true }));

  const load = async (text: string | Uint8Array, backends = ['command']) => {
    const file = join(folder, 'firecrew.policy.yaml');
    await writeFile(file, text);
    return await loadPolicyFile(file, { backends, env: {} });
  };

  it('gives the policy, where it is from and the digest of its content', async () => {
    const { policy, source, digest } = await load(GOOD);
    expect(policy.backends.get('command')?.setup.map(({ rule }) => formatAllowRule(rule))).toEqual([
      'registry.example.org',
      'mirror.example:8080/tcp',
    ]);
    const ceiling = policy.ceiling.run;
    expect(ceiling === 'no_ceiling' ? [] : ceiling.map(formatAllowRule)).toEqual(['api.example.com']);
    expect(source).toMatch(/firecrew\.policy\.yaml$/);
    expect(digest).not.toBe((await load(`${GOOD}\n`)).digest);
  });

  it('with a backend that is none, or an entry that means nothing, is refused', async () => {
    await expect(load(GOOD, ['other'])).rejects.toMatchObject({ code: 'policy_invalid', message: /backends\.command: no such backend/ });
    await expect(load('version: 1\nmissions: { run: ["https://a.example"] }\n')).rejects.toMatchObject({
      code: 'policy_invalid',
      message: /missions\.run\[0\]: /,
    });
  });

  it('that cannot be read is never an empty policy', async () => {
    await expect(loadPolicyFile(join(folder, 'absent.yaml'), { backends: [], env: {} })).rejects.toMatchObject({
      code: 'policy_unreadable',
    });
    await expect(loadPolicyFile(folder, { backends: [], env: {} })).rejects.toMatchObject({ code: 'policy_unreadable' });
    await expect(load(new Uint8Array([0xff, 0xfe, 0x00]))).rejects.toMatchObject({ code: 'policy_unreadable' });
  });
});

describe('settings without a file', () => {
  it('let missions ask for anything below their ceiling, which denies all where it is empty', () => {
    expect(policyOfCeiling(null).policy.ceiling).toEqual({ setup: 'no_ceiling', run: 'no_ceiling' });
    expect(policyOfCeiling([]).policy.ceiling).toEqual({ setup: [], run: [] });
    expect(() => policyOfCeiling(['*.example'])).toThrowError(expect.objectContaining({ code: 'policy_invalid' }));
  });
});

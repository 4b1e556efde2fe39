import { isIPv4, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPolicy, decideAddress, EgressConfigError, inRange, loadAddressRules, parseIp, parseIpRange } from '../src/index.ts';

const bare = createPolicy({ rules: [] });
const judge = (address: string, policy = bare, host = 'api.example.test') => decideAddress({ policy, host, address });

describe('a resolved address', () => {
  it.each([
    ['8.8.8.8', '8.8.8.8', 4],
    ['::ffff:8.8.8.8', '8.8.8.8', 4],
    ['2606:4700:0:0:0:0:0:1111', '2606:4700::1111', 6],
    ['64:ff9b::8.8.8.8', '64:ff9b::808:808', 6],
    ['11.0.0.0', '11.0.0.0', 4],
    ['9.255.255.255', '9.255.255.255', 4],
    ['100.63.255.255', '100.63.255.255', 4],
    ['100.128.0.0', '100.128.0.0', 4],
    ['223.255.255.255', '223.255.255.255', 4],
    ['3ffe::1', '3ffe::1', 6],
  ])('%s is public', (text, address, family) => {
    expect(judge(text)).toEqual({ verdict: 'allowed', reason: 'public_address', address, family });
  });

  it.each([
    ['0.0.0.0', 'unspecified_address'],
    ['0.255.255.255', 'unspecified_address'],
    ['10.255.255.255', 'private_address'],
    ['100.64.0.0', 'shared_address'],
    ['127.255.255.255', 'loopback_address'],
    ['169.254.169.254', 'metadata_address'],
    ['169.254.0.1', 'link_local_address'],
    ['172.31.255.255', 'private_address'],
    ['192.0.0.8', 'reserved_address'],
    ['192.0.2.1', 'documentation_address'],
    ['192.88.99.1', 'translated_address'],
    ['198.19.255.255', 'benchmark_address'],
    ['198.51.100.1', 'documentation_address'],
    ['203.0.113.1', 'documentation_address'],
    ['239.255.255.255', 'multicast_address'],
    ['240.0.0.1', 'reserved_address'],
    ['255.255.255.255', 'reserved_address'],
    ['168.63.129.16', 'metadata_address'],
    ['::', 'unspecified_address'],
    ['::1', 'loopback_address'],
    ['::127.0.0.1', 'translated_address'],
    ['::ffff:127.0.0.1', 'loopback_address'],
    ['::ffff:a9fe:a9fe', 'metadata_address'],
    ['::ffff:0:127.0.0.1', 'not_global_address'],
    ['64:ff9b::10.0.0.1', 'translated_address'],
    ['64:ff9b:1::1', 'translated_address'],
    ['100::1', 'not_global_address'],
    ['2001::1', 'translated_address'],
    ['2001:20::1', 'reserved_address'],
    ['2001:db8::1', 'documentation_address'],
    ['2002:7f00:1::', 'translated_address'],
    ['3fff::1', 'documentation_address'],
    ['5f00::1', 'not_global_address'],
    ['fd00:ec2::254', 'metadata_address'],
    ['fdff::1', 'private_address'],
    ['febf::1', 'link_local_address'],
    ['fec0::1', 'private_address'],
    ['ff02::1', 'multicast_address'],
    ['4000::1', 'not_global_address'],
    ['fe80::1%eth0', 'unparsable_address'],
    ['2606:4700:3:4::5:6:7:8', 'unparsable_address'],
    ['2606:4700:3:4:5::6:7:8:9', 'unparsable_address'],
    ['127.1', 'unparsable_address'],
    ['1.2.3.256', 'unparsable_address'],
    ['256.2.3.4', 'unparsable_address'],
    // Mapped only where all five groups before are zero: else a far address would pass for a public one.
    ['1:0:0:0:0:ffff:8.8.8.8', 'not_global_address'],
    ['', 'unparsable_address'],
  ])('%s is denied as %s', (text, reason) => {
    expect(judge(text)).toMatchObject({ verdict: 'denied', reason });
  });
});

describe("the node's own addresses", () => {
  const policy = createPolicy({
    rules: [],
    ownAddresses: ['127.0.0.1', '93.184.216.99', '10.0.0.7'],
    addressRules: [
      { host: 'git.corp.test', addresses: ['10.0.0.0/8'] },
      { host: '.local.test', addresses: ['127.0.0.1', '10.0.0.7'] },
    ],
  });

  it('are denied although they are public, in every form', () => {
    for (const text of ['93.184.216.99', '::ffff:93.184.216.99']) expect(judge(text, policy)).toMatchObject({ reason: 'own_address' });
    expect(judge('64:ff9b::93.184.216.99', policy)).toMatchObject({ reason: 'translated_address' });
  });

  it('are not opened by a range, only by being named alone', () => {
    expect(judge('10.0.0.8', policy, 'git.corp.test')).toMatchObject({
      verdict: 'allowed',
      reason: 'operator_rule',
      rule: 'git.corp.test=10.0.0.0/8',
    });
    expect(judge('10.0.0.7', policy, 'git.corp.test')).toMatchObject({ verdict: 'denied', reason: 'own_address' });
    expect(judge('10.0.0.7', policy, 'x.local.test')).toMatchObject({ verdict: 'allowed', rule: '.local.test=10.0.0.7' });
    expect(judge('127.0.0.1', policy, 'local.test')).toMatchObject({ verdict: 'allowed' });
  });
});

describe("an operator's address rule", () => {
  it('opens for its own host alone, and never what no rule may open', () => {
    const policy = createPolicy({
      rules: [],
      addressRules: [{ host: 'git.corp.test', addresses: ['10.0.0.0/8', '224.0.0.0/8', 'fd00::/8'] }],
    });
    expect(judge('10.1.1.1', policy, 'git.corp.test').verdict).toBe('allowed');
    expect(judge('10.1.1.1', policy, 'sub.git.corp.test').verdict).toBe('denied');
    expect(judge('fd12::1', policy, 'git.corp.test').verdict).toBe('allowed');
    expect(judge('224.0.0.1', policy, 'git.corp.test').verdict).toBe('denied');
  });

  it.each(['0.0.0.1', '224.0.0.1', '240.0.0.1', '::', '::7f00:1', '2001::1', '2002:7f00:1::', 'ff02::1', '4000::1'])(
    'never opens %s, not even by its own name',
    (address) => {
      const policy = createPolicy({ rules: [], addressRules: [{ host: 'git.corp.test', addresses: [address] }] });
      expect(judge(address, policy, 'git.corp.test').verdict).toBe('denied');
    },
  );

  it('opens the largest private ranges, and all that lies in them', () => {
    const policy = createPolicy({ rules: [], addressRules: [{ host: 'git.corp.test', addresses: ['10.0.0.0/8', 'fc00::/7'] }] });
    for (const address of ['10.255.255.255', 'fc00::1', 'fdff::1'])
      expect(judge(address, policy, 'git.corp.test')).toMatchObject({ verdict: 'allowed', reason: 'operator_rule' });
    expect(judge('fe80::1', policy, 'git.corp.test')).toMatchObject({ verdict: 'denied', reason: 'link_local_address' });
  });

  it.each([
    [{ host: 'a.test', addresses: ['0.0.0.0/0'] }, 'range_too_broad'],
    [{ host: 'a.test', addresses: ['9.0.0.0/7'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['8.0.0.0/7'] }, 'range_too_broad'],
    [{ host: 'a.test', addresses: ['fc00::/6'] }, 'range_too_broad'],
    [{ host: 'a.test', addresses: ['10.0.0.1/8'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['10.0.0.0/33'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['::ffff:10.0.0.0/104'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['::ffff:10.0.0.0/8'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['10.0.0.0/08'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['10.0.0.0/ 8'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['10.128.0.0/8'] }, 'bad_address_range'],
    [{ host: 'a.test', addresses: ['nowhere'] }, 'bad_address_range'],
    [{ host: '.test', addresses: ['10.0.0.0/8'] }, 'too_broad'],
    [{ host: '10.0.0.1', addresses: ['10.0.0.0/8'] }, 'bad_name'],
  ])('%j is refused as %s', (input, reason) => {
    let caught: unknown;
    try {
      loadAddressRules([input]);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(EgressConfigError);
    expect(caught).toMatchObject({ problems: [{ reason }] });
  });
});

describe('the reader of addresses', () => {
  const part = fc.oneof(
    fc.constantFrom('', '0', '1', 'ffff', '00', '256', '255', '::', 'g', '1.2.3.4', '01', '%', ' '),
    fc.nat(70_000).map(String),
  );
  const near = fc.array(part, { maxLength: 10 }).chain((parts) => fc.constantFrom(parts.join(':'), parts.join('.'), parts.join('')));

  it('accepts exactly what node:net accepts, but for zones', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          near,
          fc.ipV4(),
          fc.ipV6(),
          fc.ipV6().map((text) => text.toUpperCase()),
        ),
        (text) => {
          expect(parseIp(text) !== undefined).toBe(!text.includes('%') && (isIPv4(text) || isIPv6(text)));
        },
      ),
      { numRuns: 5000 },
    );
  });

  it.each([
    ['1:0:0:0:2:0:0:3', '1::2:0:0:3'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:0:0:3:4', '1::2:0:0:3:4'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['0:0:1:2:3:4:5:6', '::1:2:3:4:5:6'],
    ['1:2:3:4:5:6:0:0', '1:2:3:4:5:6::'],
  ])('shortens the first of the longest runs of zeros: %s is %s', (text, canonical) => {
    expect(parseIp(text)?.text).toBe(canonical);
  });

  it('gives one text for one address, the one that URL gives', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const parsed = parseIp(text);
        if (parsed?.family !== 6) return;
        expect(`[${parsed.text}]`).toBe(new URL(`http://[${text}]/`).hostname);
        expect(parseIp(parsed.text)).toEqual(parsed);
      }),
    );
  });

  it('puts an address into every prefix of itself', () => {
    const bits = (value: number) => value.toString(2).padStart(32, '0');
    fc.assert(
      fc.property(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.integer({ min: 0, max: 32 }), (a, b, prefix) => {
        const text = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
        const base = prefix === 0 ? 0 : (a & (0xffffffff << (32 - prefix))) >>> 0;
        const range = parseIpRange(`${text(base)}/${prefix}`);
        const address = parseIp(text(b));
        if (range === undefined || address === undefined) throw new Error('not read');
        expect(inRange(address, range)).toBe(bits(b).slice(0, prefix) === bits(base).slice(0, prefix));
      }),
    );
  });
});

describe('a metadata service', () => {
  const policyWith = (addresses: string[]) => createPolicy({ rules: [], addressRules: [{ host: 'meta.example', addresses }] });

  it.each(['169.254.169.254', 'fd00:ec2::254'])('%s is not opened by a range around it, only by its own address', (address) => {
    const range = address.includes(':') ? 'fd00::/8' : '169.254.0.0/16';
    const judge = (addresses: string[]) => decideAddress({ policy: policyWith(addresses), host: 'meta.example', address });
    expect(judge([range])).toMatchObject({ verdict: 'denied', reason: 'metadata_address' });
    expect(judge([address])).toMatchObject({ verdict: 'allowed', reason: 'operator_rule' });
  });
});

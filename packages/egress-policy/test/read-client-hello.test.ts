import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CLIENT_HELLO_BUFFER_MAX_BYTES,
  CLIENT_HELLO_MAX_BYTES,
  CLIENT_HELLO_RECORDS_MAX,
  type ClientHelloResult,
  createClientHelloReader,
  decideServerName,
} from '../src/index.ts';

const u16 = (value: number): number[] => [value >> 8, value & 255];
const vector16 = (bytes: readonly number[]): number[] => [...u16(bytes.length), ...bytes];
const ascii = (text: string): number[] => [...text].map((character) => character.charCodeAt(0));
const extension = (type: number, body: readonly number[]): number[] => [...u16(type), ...vector16(body)];
const sni = (name: string): number[] => extension(0, vector16([0, ...vector16(ascii(name))]));

/** Parts of a hello that a test writes otherwise. */
interface Fixed {
  readonly major?: number;
  readonly sessionBytes?: number;
  readonly suites?: readonly number[];
  readonly compression?: readonly number[];
}

function body(extensions: readonly number[] | undefined, fixed: Fixed = {}): number[] {
  const { major = 3, sessionBytes = 0, suites = [0x13, 1], compression = [0] } = fixed;
  const session = [sessionBytes, ...new Array<number>(sessionBytes).fill(2)];
  const head = [major, 3, ...new Array<number>(32).fill(1), ...session, ...vector16(suites), compression.length, ...compression];
  return extensions === undefined ? head : [...head, ...vector16(extensions)];
}

function handshake(content: readonly number[], type = 1): number[] {
  return [type, content.length >> 16, ...u16(content.length & 0xffff), ...content];
}

/** Cuts a handshake message into records of `size` bytes. */
function records(message: readonly number[], size = 16_384): Uint8Array {
  const out: number[] = [];
  for (let at = 0; at < message.length; at += size) out.push(22, 3, 1, ...vector16(message.slice(at, at + size)));
  return Uint8Array.from(out);
}

function read(bytes: Uint8Array, sizes: readonly number[] = []): ClientHelloResult {
  const reader = createClientHelloReader();
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    reader.push(bytes.subarray(at, at + size));
    at += size;
  }
  return reader.push(new Uint8Array());
}

const hello = (serverName: string | undefined, encryptedHello = false) => ({ state: 'hello', hello: { serverName, encryptedHello } });

describe('a ClientHello', () => {
  it.each([1, 2, 5, 50, 16_384])('is read from records of %d bytes', (size) => {
    expect(read(records(handshake(body(sni('api.example.test'))), size))).toEqual(hello('api.example.test'));
  });

  it('may have no extension at all, and no server name then', () => {
    expect(read(records(handshake(body(undefined))))).toEqual(hello(undefined));
    expect(read(records(handshake(body(extension(43, [2, 3, 4])))))).toEqual(hello(undefined));
  });

  it('tells when an encrypted hello hides behind the outer name', () => {
    expect(read(records(handshake(body([...sni('a.test'), ...extension(0xfe0d, [0])]))))).toEqual(hello('a.test', true));
  });

  it.each<[string, Uint8Array, string]>([
    ['plain HTTP', Uint8Array.from(ascii('GET / HTTP/1.1')), 'not_tls'],
    ['another major version', Uint8Array.from([22, 2]), 'not_tls'],
    ['an empty record', Uint8Array.from([22, 3, 1, 0, 0]), 'bad_record'],
    ['a record above 16 KiB', Uint8Array.from([22, 3, 1, 0x40, 1]), 'bad_record'],
    ['an alert between two pieces', Uint8Array.from([22, 3, 1, 0, 1, 1, 21]), 'bad_record'],
    ['another handshake message', records(handshake(body(sni('a.test')), 2)), 'bad_hello'],
    ['an announced 16 MB', Uint8Array.from([22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff]), 'hello_too_large'],
    ['bytes after the extensions', records(handshake([...body(sni('a.test')), 0])), 'bad_hello'],
    ['a repeated extension', records(handshake(body([...sni('a.test'), ...sni('b.test')]))), 'repeated_extension'],
    ['an extension that runs past the end', records(handshake(body([0, 0, 0xff, 0xff, 0]))), 'bad_hello'],
    ['an empty server name', records(handshake(body(sni('')))), 'bad_server_name'],
    [
      'two names in one list',
      records(handshake(body(extension(0, vector16([0, ...vector16([97]), 0, ...vector16([98])]))))),
      'bad_server_name',
    ],
    ['a name of another type', records(handshake(body(extension(0, vector16([1, ...vector16([97])]))))), 'bad_server_name'],
    ['an empty body', records(handshake([])), 'bad_hello'],
    ['another major version in a later record', Uint8Array.from([22, 3, 1, 0, 1, 1, 22, 2]), 'bad_record'],
    ['another message, after its first byte', Uint8Array.from([22, 3, 1, 0, 1, 2]), 'bad_hello'],
    ['an announced 64 KiB', Uint8Array.from([22, 3, 1, 0x40, 0, 1, 1, 0, 0]), 'hello_too_large'],
    ['another major version in it', records(handshake(body(sni('a.test'), { major: 2 }))), 'bad_hello'],
    ['a session of 33 bytes', records(handshake(body(sni('a.test'), { sessionBytes: 33 }))), 'bad_hello'],
    ['no cipher suite', records(handshake(body(sni('a.test'), { suites: [] }))), 'bad_hello'],
    ['half a cipher suite', records(handshake(body(sni('a.test'), { suites: [0x13] }))), 'bad_hello'],
    ['no compression method', records(handshake(body(sni('a.test'), { compression: [] }))), 'bad_hello'],
    ['an extension whose length is cut', records(handshake(body([0, 0, 0]))), 'bad_hello'],
    [
      'bytes after the list of names',
      records(handshake(body(extension(0, [...vector16([0, ...vector16(ascii('a.test'))]), 0])))),
      'bad_server_name',
    ],
  ])('with %s is refused', (_name, bytes, reason) => {
    expect(read(bytes)).toEqual({ state: 'malformed', reason });
  });

  it('that ends early is refused', () => {
    const reader = createClientHelloReader();
    reader.push(records(handshake(body(sni('a.test')))).subarray(0, 40));
    expect(reader.end()).toEqual({ state: 'malformed', reason: 'truncated_hello' });
  });

  it('that was read stays so when no more bytes come', () => {
    const reader = createClientHelloReader();
    reader.push(records(handshake(body(sni('a.test')))));
    expect(reader.end()).toEqual(hello('a.test'));
  });

  it('is read whole although the cut goes through its length', () => {
    const long = [...sni('a.test'), ...extension(21, new Array<number>(300).fill(0))];
    for (const size of [2, 3]) expect(read(records(handshake(body(long)), size))).toEqual(hello('a.test'));
  });

  it('may have a session of 32 bytes', () => {
    expect(read(records(handshake(body(sni('a.test'), { sessionBytes: 32 }))))).toEqual(hello('a.test'));
  });

  it('keeps its limits at the edge', () => {
    expect([CLIENT_HELLO_MAX_BYTES, CLIENT_HELLO_RECORDS_MAX, CLIENT_HELLO_BUFFER_MAX_BYTES]).toEqual([16_384, 1024, 21_508]);
    const padded = (length: number) => body(extension(21, new Array<number>(length - body([]).length - 4).fill(0)));
    expect(read(records(handshake(padded(CLIENT_HELLO_MAX_BYTES)), 16_384)).state).toBe('hello');
    expect(read(records(handshake(padded(CLIENT_HELLO_MAX_BYTES + 1)), 16_384))).toMatchObject({ reason: 'hello_too_large' });
    const tiny = (count: number) => records(handshake(padded(count - 4)), 1);
    expect(read(tiny(CLIENT_HELLO_RECORDS_MAX)).state).toBe('hello');
    expect(read(tiny(CLIENT_HELLO_RECORDS_MAX + 1))).toMatchObject({ reason: 'bad_record' });
  });

  const valid = fc
    .tuple(fc.stringMatching(/^[a-z.]{1,20}$/), fc.integer({ min: 1, max: 60 }))
    .map(([name, size]) => records(handshake(body([...extension(43, [2, 3, 4]), ...sni(name)])), size));
  const damaged = fc
    .tuple(valid, fc.nat(300), fc.nat(255))
    .map(([bytes, at, value]) => bytes.map((byte, index) => (index === at % bytes.length ? value : byte)));

  it('gives the same result however it is cut, and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(valid, damaged, fc.uint8Array({ maxLength: 100 })), fc.array(fc.integer({ min: 1, max: 9 })), (bytes, sizes) => {
        const whole = read(bytes);
        expect(read(bytes, sizes)).toEqual(whole);
        expect(read(bytes, new Array<number>(bytes.length).fill(1))).toEqual(whole);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the verdict on a server name', () => {
  it.each([
    ['api.example.test', 'allowed', 'server_name_matches'],
    ['API.Example.Test', 'allowed', 'server_name_matches'],
    ['evil.test', 'denied', 'server_name_mismatch'],
    ['api.example.test\0', 'denied', 'server_name_mismatch'],
    ['127.0.0.1', 'denied', 'server_name_mismatch'],
    ['sub.api.example.test', 'denied', 'server_name_mismatch'],
    [undefined, 'denied', 'no_server_name'],
  ])('of %j is %s', (serverName, verdict, reason) => {
    expect(decideServerName({ host: 'api.example.test', serverName })).toEqual({ verdict, reason });
  });
});

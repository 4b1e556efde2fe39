import { expect, it } from 'vitest';
import { isLoopback } from '../src/index.ts';

it.each(['http://127.0.0.1:80/a', 'http://127.8.9.10', 'http://[::1]:4', 'http://localhost', 'http://2130706433', 'http://0x7f.1'])(
  'knows %s as this host',
  (url) => expect(isLoopback(new URL(url))).toBe(true),
);

it.each([
  'http://127.0.0.1.example',
  'http://localhost.example',
  'http://10.0.0.1',
  'http://[::ffff:7f00:1]',
  'http://example/127.0.0.1',
  'http://localhost@example',
])('does not take %s for this host', (url) => expect(isLoopback(new URL(url))).toBe(false));

import { describe, expect, it } from 'vitest';
import { execEnvironment } from '../../src/exec/exec-environment.ts';
import type { LoopbackPorts } from '../../src/link/loopback-pumps.ts';

const config = {
  environment: { PATH: '/image', HOME: '/home' },
  platform: { FIRECREW_AGENT_DIR: '/agent' },
  attemptMarker: 'attempt',
  modelRoute: false,
};
const up: LoopbackPorts = { proxy: 3128, model: 11_434 };
const down: LoopbackPorts = { proxy: undefined, model: undefined };

function built(entries: Record<string, string> | null, ports = up, over: Partial<typeof config> = {}): Record<string, string> {
  const made = execEnvironment('run', entries, { ...config, ...over }, ports);
  if (!made.ok) throw new Error(made.code);
  return made.environment;
}

describe('the environment of an exec', () => {
  it('holds the image, the caller over it, and the marks over both', () => {
    expect(built({ PATH: '/caller', API_TOKEN: 'let in by the host', FIRECREW_ROUND: '2' }, down)).toEqual({
      PATH: '/caller',
      HOME: '/home',
      API_TOKEN: 'let in by the host',
      FIRECREW_ROUND: '2',
      FIRECREW_AGENT_DIR: '/agent',
      FIRECREW_ATTEMPT: 'attempt',
      FIRECREW_EXEC: 'attempt:run',
    });
  });

  it.each([null, {}])('has the proxy variables in both spellings when the caller sends %j', (entries) => {
    const environment = built(entries);
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy']) expect(environment[name]).toBe('http://127.0.0.1:3128');
    expect(environment.NO_PROXY).toContain('127.0.0.1');
  });

  it('names the model route only where the VM has one and the listener is up', () => {
    expect(built(null)).not.toHaveProperty('FIRECREW_MODEL_URL');
    expect(built(null, down, { modelRoute: true })).not.toHaveProperty('FIRECREW_MODEL_URL');
    expect(built(null, up, { modelRoute: true })).toHaveProperty('FIRECREW_MODEL_URL', 'http://127.0.0.1:11434');
  });

  it.each([
    { entries: { '': 'hidden' }, code: 'environment_empty_name', name: '' },
    { entries: { 'A=B': 'hidden' }, code: 'environment_bad_name', name: 'A=B' },
    { entries: { 'A\0': 'hidden' }, code: 'environment_bad_name', name: 'A?' },
    { entries: { KEY: 'hid\0den' }, code: 'environment_nul', name: 'KEY' },
    { entries: { LONG: `hidden${'x'.repeat(131_072)}` }, code: 'environment_too_large', name: 'LONG' },
    { entries: { FIRECREW_ATTEMPT: 'hidden' }, code: 'environment_reserved_name', name: 'FIRECREW_ATTEMPT' },
    { entries: { firecrew_exec: 'hidden' }, code: 'environment_reserved_name', name: 'firecrew_exec' },
  ])('is refused as $code, with the name and never the value', ({ entries, code, name }) => {
    const made = execEnvironment('run', entries, config, up);
    if (made.ok) throw new Error('taken');
    expect(made.code).toBe(code);
    expect(made.message).toContain(name);
    expect(made.message).not.toMatch(/hid|den/);
  });
});

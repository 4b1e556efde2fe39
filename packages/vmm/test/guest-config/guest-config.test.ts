import { describe, expect, it } from 'vitest';
import { GUEST_ALONE_MS, type GuestPlace, guestConfig } from '../../src/guest-config/guest-config.ts';

const place: GuestPlace = {
  paths: { workspace: '/workspace', home: '/home/agent', tmp: '/tmp', agentDir: '/agent', taskDir: '/task', state: '/state' },
  socketPath: '/s',
  ports: { proxy: 3128, model: 0 },
  caBundle: '/ca.pem',
  lifeline: false,
  resync: true,
  folders: [],
  user: null,
  etc: {},
  searchPath: '/opt/tools/bin:/bin',
  imageEnvironment: {},
};
const spec = { attemptMarker: 'a.1', environment: { FROM_SPEC: '1' } };
const configOf = (change: Partial<GuestPlace>) => guestConfig(spec, { ...place, ...change }, Buffer.alloc(32));

describe('the configuration of a guest agent', () => {
  it('gives commands what the image declares, but not where its own account and its roots would be', () => {
    const imageEnvironment = {
      LANG: 'de_DE.UTF-8',
      DISABLE_AUTOUPDATER: '1',
      HOME: '/root',
      USER: 'root',
      TMPDIR: '/var/tmp',
      NODE_EXTRA_CA_CERTS: '/other.pem',
      FROM_SPEC: '0',
    };
    expect(configOf({ imageEnvironment }).environment).toMatchObject({
      LANG: 'de_DE.UTF-8',
      DISABLE_AUTOUPDATER: '1',
      HOME: '/home/agent',
      USER: 'agent',
      TMPDIR: '/tmp',
      PATH: '/opt/tools/bin:/bin',
      NODE_EXTRA_CA_CERTS: '/ca.pem',
      FROM_SPEC: '1',
    });
    expect(configOf({}).environment).toMatchObject({ LANG: 'C.UTF-8', SHELL: '/bin/sh' });
  });

  it('bounds how long a guest goes on alone where nothing of the host would end it', () => {
    expect(configOf({ lifeline: false }).aloneMs).toBe(GUEST_ALONE_MS);
    expect(configOf({ lifeline: true }).aloneMs).toBeNull();
  });
});

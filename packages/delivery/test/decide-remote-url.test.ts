import { describe, expect, it } from 'vitest';
import { decideRemoteUrl } from '../src/index.ts';

const FORGE = { side: 'server', forgeHost: 'forge.example', hasCredential: true } as const;

describe('the URL of a remote', () => {
  it.each([
    ['https://forge.example/a/b.git', 'https://forge.example/a/b.git', 'https', 'forge.example', false],
    ['HTTPS://FORGE.example/a', 'https://forge.example/a', 'https', 'forge.example', false],
    ['https://user:pw@forge.example/a', 'https://forge.example/a', 'https', 'forge.example', true],
    ['https://token@forge.example:8443/a?x=1', 'https://forge.example:8443/a?x=1', 'https', 'forge.example:8443', true],
    ['ssh://git@forge.example:2222/a', 'ssh://git@forge.example:2222/a', 'ssh', 'forge.example:2222', false],
    ['ssh://git:pw@forge.example/a', 'ssh://git@forge.example/a', 'ssh', 'forge.example', true],
    ['git@forge.example:a/b.git', 'git@forge.example:a/b.git', 'ssh', 'forge.example', false],
    ['forge.example:a', 'forge.example:a', 'ssh', 'forge.example', false],
    ['git@[::1]:a', 'git@[::1]:a', 'ssh', '[::1]', false],
  ])('%s is allowed as %s', (given, url, transport, host, credentialStripped) => {
    expect(decideRemoteUrl({ url: given, side: 'server' })).toMatchObject({ verdict: 'allowed', url, transport, host, credentialStripped });
  });

  it.each([
    ['', 'empty'],
    ['https://a/b\n', 'control_character'],
    [' https://a/b', 'control_character'],
    ['--upload-pack=touch x', 'option_like'],
    ['ext::sh -c id', 'transport_helper'],
    ['fd::7', 'transport_helper'],
    ['git://a/b', 'scheme_unsupported'],
    ['ftp://a/b', 'scheme_unsupported'],
    ['http://a/b', 'plain_http'],
    ['https://', 'no_host'],
    ['https:///', 'no_host'],
    ['ssh:///a', 'no_host'],
    ['ssh://-oProxyCommand=x/a', 'option_like'],
    ['-oProxyCommand=x:a', 'option_like'],
    ['git@-oProxyCommand=x:a', 'option_like'],
    ['https://good.example\\@evil.example/x', 'no_host'],
    ['/srv/repo', 'local_path'],
    ['../repo', 'local_path'],
    ['file:///srv/repo', 'local_path'],
    ['./a:b', 'local_path'],
  ])('%j is refused on the server: %s', (url, reason) => {
    expect(decideRemoteUrl({ url, side: 'server' })).toMatchObject({ verdict: 'refused', reason });
  });

  it.each(['/srv/repo', '../repo', 'file:///srv/repo'])("%s is allowed on the caller's side alone", (url) => {
    expect(decideRemoteUrl({ url, side: 'client' })).toMatchObject({ verdict: 'allowed', transport: 'local', url });
  });

  it.each([
    ['https://forge.example/a', true, undefined],
    ['https://old:token@FORGE.EXAMPLE/a', true, undefined],
    ['https://forge.example.evil.example/a', false, 'other_host'],
    ['https://evil.example/forge.example', false, 'other_host'],
    ['https://forge.example@evil.example/a', false, 'other_host'],
    ['https://forge.example:8443/a', false, 'other_host'],
    ['https://evil.example/x@forge.example', false, 'other_host'],
    ['git@forge.example:a', false, 'ssh_form'],
  ])('%s gets the credential of the forge: %s', (url, authenticated, credentialReason) => {
    const decision = decideRemoteUrl({ ...FORGE, url });
    expect(decision).toMatchObject({ verdict: 'allowed', authenticated, ...(credentialReason === undefined ? {} : { credentialReason }) });
    expect(JSON.stringify(decision)).not.toContain('token');
  });

  it('keeps an `@` in the path out of the host', () => {
    expect(decideRemoteUrl({ ...FORGE, url: 'https://forge.example/x@evil.example/r' })).toMatchObject({
      url: 'https://forge.example/x@evil.example/r',
      host: 'forge.example',
      authenticated: true,
    });
  });

  it('says when the credential is missing, and when no forge is known', () => {
    expect(decideRemoteUrl({ ...FORGE, hasCredential: false, url: 'https://forge.example/a' })).toMatchObject({
      credentialReason: 'credential_missing',
    });
    expect(decideRemoteUrl({ side: 'server', url: 'https://forge.example/a' })).toMatchObject({ credentialReason: 'no_forge' });
  });
});

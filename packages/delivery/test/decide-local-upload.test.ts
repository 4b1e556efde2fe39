import { describe, expect, it } from 'vitest';
import { decideFileUpload, decideLocalUpload, isSecretShaped } from '../src/index.ts';

describe('secret-shaped paths', () => {
  it.each([
    ['.env', 'dotenv'],
    ['app/.ENV.production', 'dotenv'],
    ['.envrc', 'dotenv'],
    ['prod.env', 'dotenv'],
    ['id_rsa', 'private_key'],
    ['keys/id_ed25519', 'private_key'],
    ['deploy_rsa', 'private_key'],
    ['server.key', 'private_key'],
    ['tls/server.PEM', 'private_key'],
    ['.ssh/deploy', 'private_key'],
    ['a.p12', 'key_store'],
    ['release.keystore', 'key_store'],
    ['.npmrc', 'registry_token'],
    ['.yarnrc.yml', 'registry_token'],
    ['.pypirc', 'registry_token'],
    ['x/.docker/config.json', 'registry_token'],
    ['.cargo/credentials.toml', 'registry_token'],
    ['.netrc', 'machine_login'],
    ['_netrc', 'machine_login'],
    ['.git-credentials', 'machine_login'],
    ['.aws/credentials', 'cloud_credential'],
    ['service-account.json', 'cloud_credential'],
    ['credentials.json', 'cloud_credential'],
    ['.kube/config', 'cluster_credential'],
    ['kubeconfig', 'cluster_credential'],
    ['.htpasswd', 'password_file'],
    ['config/master.key', 'private_key'],
    ['secrets.yaml', 'password_file'],
    ['terraform.tfstate', 'infrastructure_state'],
    ['a\nb.pem', 'private_key'],
    ['.env.\nlocal', 'dotenv'],
    ['new\rline/.ssh/k\ney', 'private_key'],
  ])('%s is %s', (path, reason) => {
    expect(isSecretShaped(path)).toBe(reason);
  });

  it.each([
    '.env.example',
    '.env.sample',
    'id_rsa.pub',
    'src/env.ts',
    'environment.md',
    'keyboard.ts',
    '.ssh/config',
    'docs/secrets.md',
    'monkey',
    'package.json',
  ])('%s is none', (path) => {
    expect(isSecretShaped(path)).toBeUndefined();
  });

  it('reads names that are not UTF-8', () => {
    expect(isSecretShaped(Uint8Array.from([0xff, 0x2f, 0x2e, 0x65, 0x6e, 0x76]))).toBe('dotenv');
  });
});

describe('a file of the caller', () => {
  const file = { path: 'a.txt', included: false, secretIncluded: false } as const;
  it.each([
    [{ ...file, standing: 'committed' }, { verdict: 'upload' }],
    [{ ...file, standing: 'untracked' }, { verdict: 'upload' }],
    [
      { ...file, standing: 'ignored' },
      { verdict: 'leave_out', reason: 'ignored' },
    ],
    [{ ...file, standing: 'ignored', included: true }, { verdict: 'upload' }],
    [
      { ...file, path: '.env', standing: 'untracked' },
      { verdict: 'leave_out', reason: 'secret_shaped', secret: 'dotenv' },
    ],
    [
      { ...file, path: '.env', standing: 'changed' },
      { verdict: 'leave_out', reason: 'secret_shaped', secret: 'dotenv' },
    ],
    [
      { ...file, path: '.env', standing: 'ignored', included: true },
      { verdict: 'leave_out', reason: 'secret_shaped', secret: 'dotenv' },
    ],
    [
      { ...file, path: '.env', standing: 'ignored', secretIncluded: true },
      { verdict: 'upload', secret: 'dotenv' },
    ],
    [
      { ...file, path: '.env', standing: 'untracked', secretIncluded: true },
      { verdict: 'upload', secret: 'dotenv' },
    ],
    [
      { ...file, path: '.npmrc', standing: 'committed' },
      { verdict: 'upload', secret: 'registry_token' },
    ],
  ] as const)('%j: %j', (input, decision) => {
    expect(decideFileUpload(input)).toEqual(decision);
  });
});

describe('the base of a mission on a local repository', () => {
  const clean = { unborn: false, dirtyPaths: 0, lfs: false, partial: false, requireClean: false, push: false, pushDirty: false } as const;
  it.each([
    [clean, { verdict: 'upload', base: 'head', notes: [] }],
    [
      { ...clean, requireClean: true, push: true },
      { verdict: 'upload', base: 'head', notes: [] },
    ],
    [
      { ...clean, dirtyPaths: 1 },
      { verdict: 'upload', base: 'synthetic', notes: ['synthetic_base'] },
    ],
    [
      { ...clean, dirtyPaths: 1, push: true, pushDirty: true },
      { verdict: 'upload', base: 'synthetic', notes: ['synthetic_base'] },
    ],
    [
      { ...clean, lfs: true },
      { verdict: 'upload', base: 'head', notes: ['large_files_as_checked_out'] },
    ],
  ] as const)('%j: %j', (input, decision) => {
    expect(decideLocalUpload(input)).toEqual(decision);
  });

  it.each([
    [{ ...clean, unborn: true }, 'repo_unborn'],
    [{ ...clean, partial: true }, 'repo_partial'],
    [{ ...clean, dirtyPaths: 1, requireClean: true }, 'tree_dirty'],
    [{ ...clean, dirtyPaths: 1, push: true }, 'push_needs_push_dirty'],
  ] as const)('%j is refused: %s', (input, reason) => {
    expect(decideLocalUpload(input)).toMatchObject({ verdict: 'refused', reason });
  });
});

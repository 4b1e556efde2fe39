import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeOf } from '@firecrew/base';
import type { BackendView } from '@firecrew/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { renderBackend, renderBackends } from '../src/commands/backends.ts';
import { EXIT, exitCodeOf } from '../src/exit-codes.ts';
import { openHome } from '../src/home/open-home.ts';
import { BACKEND_FILE_MAX_BYTES, checkBackends, readBackendFiles } from '../src/settings/backend-files.ts';
import { mergeSettings, settingsOfEnvironment } from '../src/settings/settings.ts';
import { writeServerConfig } from '../src/supervisor/service-config.ts';

const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));
const MANIFEST = {
  name: 'some-agent',
  label: 'Some agent',
  image: 'some-image',
  drivers: ['qemu'],
  harness: { kind: 'command' },
  hosts: [],
  modelRoute: { format: 'openai_chat' },
  credentialContract: null,
  scaffolding: [],
  demand: {},
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fc-backends-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: unknown): string => {
  const file = join(folder, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
};
const fault = (files: string[]) => {
  try {
    readBackendFiles(files);
    return undefined;
  } catch (error) {
    return { code: codeOf(error), message: (error as Error).message };
  }
};

describe('the manifests that settings name', () => {
  it('become those of the server, whole', () => {
    const file = write('some.json', MANIFEST);
    const settings = mergeSettings([{ name: 'the environment', value: settingsOfEnvironment({ FIRECREW_BACKENDS: file }) }]);
    expect(settings.backends).toEqual([file]);
    const config = writeServerConfig(openHome(join(folder, 'h')), settings, { connectionString: 'postgresql://h/d' });
    expect(JSON.parse(readFileSync(config, 'utf8')).backends).toEqual([MANIFEST]);
  });

  it.each<[string, unknown, string, string]>([
    ['is no JSON', '{', 'backend_unreadable', 'cannot be used'],
    ['is larger than a manifest', ' '.repeat(BACKEND_FILE_MAX_BYTES + 1), 'backend_unreadable', `more than ${BACKEND_FILE_MAX_BYTES}`],
    ['has a key that nobody reads', { ...MANIFEST, extra: 1 }, 'backend_invalid', 'extra'],
    ['has the name of a builtin one', { ...MANIFEST, name: 'command' }, 'backend_duplicate', 'command'],
    [
      'has a variable that nothing fills',
      { ...MANIFEST, credentialContract: { variables: [{ name: 'X_KEY', required: true, purpose: 'calls' }] } },
      'backend_invalid',
      'name a modelRoute',
    ],
  ])('are refused by file where one %s', (_what, content, code, words) => {
    const file = write('bad.json', content);
    expect(fault([file])).toEqual({ code, message: expect.stringContaining(words) });
    expect(exitCodeOf(Object.assign(new Error(), { code }))).toBe(EXIT.usage);
    if (code !== 'backend_duplicate') expect(fault([file])?.message).toContain(file);
  });

  it('are refused where one is not there, is a folder, or is there twice', () => {
    mkdirSync(join(folder, 'folder'));
    for (const name of ['absent.json', 'folder']) expect(fault([join(folder, name)])?.code).toBe('backend_unreadable');
    const file = write('some.json', MANIFEST);
    expect(fault([file, file])?.code).toBe('backend_duplicate');
    const settings = { name: 'config.json', value: { backends: ['some.json'] } };
    expect(() => mergeSettings([settings])).toThrow('must be an absolute path');
  });

  it('have all the names that model routes are of', () => {
    const route = { format: 'openai_chat', upstream: 'https://models.example.test', credential: null };
    const settings = (name: string) => mergeSettings([{ name: 'config.json', value: { modelRoutes: { [name]: route } } }]);
    const backends = [write('some.json', MANIFEST)];
    expect(checkBackends({ ...settings('some-agent'), backends }).map(({ name }) => name)).toEqual(['some-agent']);
    expect(checkBackends(settings('command'))).toEqual([]);
    expect(() => checkBackends({ ...settings('some-agnet'), backends })).toThrow(
      'modelRoutes names some-agnet, and no backend has this name',
    );
  });
});

describe('the manifests of the examples', () => {
  it('can be used together, each with an image that a recipe of the examples makes', () => {
    const files = readdirSync(join(EXAMPLES, 'backends'));
    const found = readBackendFiles(files.map((file) => join(EXAMPLES, 'backends', file)));
    expect(found.map(({ name }) => `${name}.json`)).toEqual(files.map((file) => basename(file)));
    const recipes = readdirSync(join(EXAMPLES, 'images'));
    for (const { image } of found) expect(recipes).toContain(`${image}.json`);
  });
});

describe('the backends of a server as people see them', () => {
  const node = { id: 'nod_0000000000000001', name: 'host\u001b[2J', drivers: ['qemu'] };
  const view = (over: Partial<BackendView>): BackendView => ({
    ...{ name: 'some-agent', label: 'Some\u001b[31m agent', image: 'some-image', drivers: ['qemu'], hosts: [] },
    ...{ modelRoute: null, available: true, detail: '', nodes: [node] },
    ...over,
  });

  it('say where each can run, and why one cannot', () => {
    const gone = view({
      name: 'gone',
      image: null,
      modelRoute: { format: 'gemini' },
      available: false,
      detail: 'no node\u0007 is there',
      nodes: [],
    });
    const lines = [...renderBackends([view({}), gone]), ...renderBackend(view({})), ...renderBackend(gone)].join('\n');
    expect(lines).toMatch(/some-agent +some-image +- +host.*\(qemu\)/);
    expect(lines).toMatch(/gone +- +gemini +cannot run: no node/);
    expect(lines).toContain('needs one in the format gemini');
    expect(lines).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
  });
});

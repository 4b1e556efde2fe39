import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until as lookUntil } from './support/ask.ts';
import { FakeNode } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';
import { uploadRepository } from './support/upload-repository.ts';

const FILES = { 'a.txt': 'one\n' };
const PATH = process.env.PATH ?? '';

/**
 * Stands in front of git: a call whose subcommand has a file in FAULTS does what the file says. `once` fails one time, `always` every time,
 * `wait` waits until the file is gone.
 */
const GIT = `#!/bin/sh
for word in "$@"; do
  fault="FAULTS/$word"
  case "$word" in */*) continue ;; esac
  [ -f "$fault" ] || continue
  case "$(cat "$fault")" in
    wait) : > "$fault.waits"; while [ -f "$fault" ]; do sleep 0.05; done ;;
    once) rm "$fault"; : > "$fault.failed"; echo 'fatal: No space left on device' >&2; exit 128 ;;
    always) echo 'fatal: unable to read tree' >&2; exit 128 ;;
  esac
done
PATH='${PATH}' exec git "$@"
`;

interface View {
  readonly state: string;
  readonly end: { readonly detail: string; readonly exitCode: number; readonly delivery: Record<string, unknown> | null } | null;
  readonly phases: readonly { readonly delivery: Record<string, unknown> | null }[];
}

let databases: TestDatabaseServer;
let folder: string;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-faults-'));
  await mkdir(join(folder, 'faults'));
  await mkdir(join(folder, 'bin'));
  await writeFile(join(folder, 'bin', 'git'), GIT.replaceAll('FAULTS', join(folder, 'faults')));
  await chmod(join(folder, 'bin', 'git'), 0o755);
  process.env.PATH = `${join(folder, 'bin')}${delimiter}${PATH}`;
  server = await startTestServer({}, databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  process.env.PATH = PATH;
  await rm(join(folder, 'faults'), { recursive: true });
  node.close();
  await server.stop();
  await rm(folder, { recursive: true });
});

async function create(files: Readonly<Record<string, string>> = FILES, phase: Record<string, unknown> = {}): Promise<string> {
  const json = {
    title: 'Change it',
    repository: await uploadRepository(server, files),
    phases: [{ kind: 'coding', task: 'x', ...phase }],
    agent: { command: 'true' },
    allowUnisolated: true,
  };
  const reply = await server.call('POST', '/v1/missions', { json });
  expect(reply.status).toBe(201);
  return (reply.body as { id: string }).id;
}

const until = async <T>(look: () => Promise<T | undefined>): Promise<T> => await lookUntil(look, (now): now is T => now !== undefined);

async function ended(id: string): Promise<View> {
  return await until(async () => {
    const view = (await server.call('GET', `/v1/missions/${id}`)).body as View;
    return ['draft', 'running'].includes(view.state) ? undefined : view;
  });
}

const fault = (command: string, how: 'once' | 'always' | 'wait') => writeFile(join(folder, 'faults', command), how);
const pack = (id: string) => server.call('GET', `/v1/missions/${id}/pack`);
const approve = (id: string) => server.call('POST', `/v1/missions/${id}/approve`, { json: {} });

describe('a delivery', () => {
  it('whose changes cannot be read has its commit and the reason, and is pushed only after an approval', async () => {
    const id = await create();
    await fault('diff-tree', 'always');
    await node.finish(await node.accept(), { 'a.txt': 'two\n' });
    const { state, phases } = await ended(id);
    const reason = expect.stringContaining('unable to read tree');
    const delivery = { state: 'awaiting_approval', pushed: 'awaiting_approval', pushDetail: reason, diffError: reason, diffstat: null };
    expect([state, phases[0]?.delivery]).toMatchObject(['completed', { ...delivery, commit: expect.stringMatching(/^[0-9a-f]{40}$/) }]);
    const fetched = await pack(id);
    expect([fetched.status, fetched.headers.get('x-firecrew-awaiting-approval')]).toEqual([200, 'true']);
    expect((await approve(id)).status).toBe(200);
    expect((await pack(id)).headers.get('x-firecrew-awaiting-approval')).toBe('false');
  });

  it('is tried again after an error that may pass', async () => {
    const id = await create();
    await fault('commit-tree', 'once');
    await node.finish(await node.accept(), { 'a.txt': 'two\n' });
    const { state, phases } = await ended(id);
    expect([state, phases[0]?.delivery]).toMatchObject(['completed', { state: 'delivered', diffstat: { files: 1 }, diffError: null }]);
  });

  it('keeps the commit that it made when what follows fails for good, and waits for no approval before', async () => {
    const id = await create();
    await fault('diff-tree', 'wait');
    await node.finish(await node.accept(), { 'a.txt': 'two\n' });
    const during = await until(async () => {
      const reply = await pack(id);
      return reply.status === 200 ? reply : undefined;
    });
    expect(during.headers.get('x-firecrew-awaiting-approval')).toBe('true');
    expect((await approve(id)).body).toMatchObject({ error: { code: 'nothing_to_approve' } });
    // The record cannot be written without its attempt.
    await server.query('delete from attempts');
    await rm(join(folder, 'faults', 'diff-tree'));
    const { state, end } = await ended(id);
    const commit = during.headers.get('x-firecrew-commit');
    expect([state, end]).toMatchObject(['failed', { detail: expect.stringContaining('could not be delivered'), delivery: { commit } }]);
    expect((await pack(id)).headers.get('x-firecrew-commit')).toBe(commit);
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as { artifacts: { name: string }[] };
    expect(artifacts.map(({ name }) => name).sort()).toEqual(['changes.patch', 'diffstat.txt', 'names.txt']);
  });
});

describe('a phase whose commit would equal its base', () => {
  const ignoring = { ...FILES, '.gitignore': 'out/\n' };

  it.each([
    { what: 'only ignored files', files: ignoring, tree: { ...ignoring, 'out/x.js': 'x\n' }, detail: 'only ignored files were changed' },
    {
      what: 'only line endings',
      files: { ...FILES, '.gitattributes': '* text=auto\n' },
      tree: { 'a.txt': 'one\r\n', '.gitattributes': '* text=auto\n' },
      detail: 'there is nothing to commit',
    },
    { what: 'nothing at all', files: FILES, tree: FILES, detail: 'there is nothing to commit' },
  ])('fails with $what, unless that is allowed', async ({ files, tree, detail }) => {
    const strict = await create(files);
    await node.finish(await node.accept(), tree);
    expect(await ended(strict)).toMatchObject({
      state: 'failed',
      end: { exitCode: 1, detail: expect.stringContaining(detail), delivery: { state: 'nothing_to_deliver', commit: null } },
    });
    for (const phase of [{ allowEmpty: true }, { kind: 'research' }]) {
      const lenient = await create(files, phase);
      await node.finish(await node.accept(), tree);
      expect((await ended(lenient)).state).toBe('completed');
    }
  });
});

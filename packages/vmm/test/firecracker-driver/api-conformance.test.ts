import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { request, sendRaw } from './raw-requests.ts';
import { FirecrackerRig } from './rig.ts';
import type { SimulatorOptions } from './simulator/options.ts';

/** A real binary of version 1.16 to run the same cases against; those that start a guest need a KVM device as well. */
const real = process.env.FIRECREW_TEST_FIRECRACKER;
const realStarts = process.env.FIRECREW_TEST_VMLINUX;

const DESERIALIZE = 'An error occurred when deserializing the json body of a request: ';
const BEFORE = 'The requested operation is not supported before starting the microVM.';
const AFTER = 'The requested operation is not supported after starting the microVM.';

let rig: FirecrackerRig;
beforeAll(async () => {
  rig = await FirecrackerRig.make();
});
afterAll(() => rig.remove());

const programs = [
  { name: 'the simulator', binary: undefined, without: false },
  {
    name: `a real Firecracker${real === undefined ? ' (FIRECREW_TEST_FIRECRACKER names none)' : ''}`,
    binary: real,
    without: real === undefined,
  },
];

describe.each(programs)('the API of $name', ({ name, binary, without }) => {
  const test = it.skipIf(without);
  const testStarted = it.skipIf(without || (binary !== undefined && realStarts === undefined));
  const testSimulated = it.skipIf(name !== 'the simulator');
  let folder = '';
  let socket = '';
  let child: ChildProcess | undefined;

  async function start(options: Partial<SimulatorOptions> = {}): Promise<ChildProcess> {
    const program = binary ?? (await rig.host({ simulator: { guest: 'silent', ...options } })).firecracker;
    const started = spawn(program, ['--id', 'test-1', '--api-sock', socket], { stdio: ['ignore', 'ignore', 'pipe'] });
    while (started.exitCode === null && !(await listens(socket))) await delay(5);
    return started;
  }
  async function stop(): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fc-conf-'));
    socket = join(folder, 'a');
    for (const name of ['disk', 'initrd']) await writeFile(join(folder, name), Buffer.alloc(1024));
    await writeFile(join(folder, 'kernel'), binary === undefined || realStarts === undefined ? '\x7fELF' : await readFile(realStarts));
    if (!without) child = await start();
  });
  afterEach(async () => {
    await stop();
    await rm(folder, { recursive: true, force: true });
  });

  const put = (path: string, body: unknown) => request(socket, 'PUT', path, body);
  const drive = (over: object = {}) => ({
    drive_id: 'd_1',
    is_root_device: false,
    is_read_only: true,
    path_on_host: join(folder, 'disk'),
    ...over,
  });
  const started = async (): Promise<void> => {
    expect((await put('/boot-source', { kernel_image_path: join(folder, 'kernel'), initrd_path: join(folder, 'initrd') })).status).toBe(
      204,
    );
    expect((await put('/actions', { action_type: 'InstanceStart' })).status).toBe(204);
  };

  test('answers with a status line that has no reason, and without a body', async () => {
    const answer = await sendRaw(socket, 'PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}');
    expect(answer).toMatch(/^HTTP\/1\.1 204 \r\n/);
    expect(answer).toMatch(/\r\nServer: Firecracker API\r\n/);
    expect(answer).toMatch(/\r\nConnection: keep-alive\r\n/);
  });

  test('says which version it is, and its state', async () => {
    expect((await request(socket, 'GET', '/version')).body).toEqual({ firecracker_version: expect.stringMatching(/^1\.16\.\d+$/) });
    expect((await request(socket, 'GET', '/')).body).toMatchObject({ id: 'test-1', state: 'Not started', app_name: 'Firecracker' });
  });

  test('takes a body in chunks for none, and its chunks for the next request', async () => {
    const head = 'PUT /entropy HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(await sendRaw(socket, head)).toContain('Empty PUT request.');
    expect(await sendRaw(socket, `${head}2\r\n{}\r\n0\r\n\r\n`, 300)).toContain('All previous unanswered requests will be dropped.');
  });

  test('loses its answer to a peer that half-closes first', async () => {
    const peer = connect({ path: socket, allowHalfOpen: true });
    const parts: Buffer[] = [];
    peer.on('data', (part: Buffer) => parts.push(part));
    peer.end('PUT /entropy HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}');
    await once(peer, 'close');
    expect(Buffer.concat(parts).toString()).toBe('');
  });

  test('waits for the rest of a body that is longer than what came', async () => {
    expect(await sendRaw(socket, 'PUT /entropy HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}', 300)).toBe('');
  });

  test('refuses a body above 51,200 bytes, and bad HTTP, with words that are no JSON', async () => {
    const long = await sendRaw(socket, `PUT /entropy HTTP/1.1\r\nContent-Length: 51201\r\n\r\n${' '.repeat(51_201)}`, 300);
    const bad = await sendRaw(socket, 'POST / HTTP/1.1\r\n\r\n', 300);
    for (const answer of [long, bad]) {
      expect(answer).toMatch(/^HTTP\/1\.1 400 \r\n/);
      const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
      expect(body).toContain('\nAll previous unanswered requests will be dropped.');
      expect(() => JSON.parse(body)).toThrow();
    }
  });

  test('takes ten connections, and refuses the eleventh', async () => {
    const open: Socket[] = [];
    for (let count = 0; count < 10; count += 1) {
      const peer = connect(socket);
      await once(peer, 'connect');
      open.push(peer);
    }
    // Connections are taken in their order: this one comes after the ten.
    const answer = await sendRaw(socket, '', 500);
    expect(answer).toMatch(/^HTTP\/1\.1 503/);
    expect(answer).toContain('Too many open connections');
    for (const peer of open) peer.destroy();
    await expect.poll(async () => (await put('/entropy', {})).status).toBe(204);
  });

  const wrong: readonly [string, string, string, unknown, string | RegExp][] = [
    ['a path that there is not', 'PUT', '/nothing', {}, 'Invalid request method and/or path: PUT nothing.'],
    ['a method that a path does not have', 'PATCH', '/boot-source', {}, 'Invalid request method and/or path: PATCH boot-source.'],
    ['no body', 'PUT', '/entropy', undefined, 'Empty PUT request.'],
    ['a body on GET', 'GET', '/version', {}, 'GET request cannot have a body.'],
    ['a field that is missing', 'PUT', '/machine-config', { mem_size_mib: 128 }, new RegExp(`^${DESERIALIZE}missing field \`vcpu_count\``)],
    ['a field that is not known', 'PUT', '/entropy', { speed: 1 }, new RegExp(`^${DESERIALIZE}unknown field \`speed\``)],
    ['a value of another type', 'PUT', '/machine-config', { vcpu_count: 'x', mem_size_mib: 1 }, new RegExp(`^${DESERIALIZE}invalid type`)],
    ['a value that there is not', 'PUT', '/actions', { action_type: 'Halt' }, new RegExp(`^${DESERIALIZE}unknown variant \`Halt\``)],
    ['another id in the body', 'PUT', '/drives/other', drive(), 'The id from the path does not match the id from the body!'],
    [
      'a hyphen in an id',
      'PUT',
      '/drives/d-1',
      drive({ drive_id: 'd-1' }),
      'API Resource IDs can only contain alphanumeric characters and underscores.',
    ],
    ['33 vCPUs', 'PUT', '/machine-config', { vcpu_count: 33, mem_size_mib: 128 }, /^Machine config error: The number of vCPUs must be/],
    [
      'no memory',
      'PUT',
      '/machine-config',
      { vcpu_count: 1, mem_size_mib: 0 },
      /^Machine config error: The memory size \(MiB\) is either 0/,
    ],
    [
      'a kernel that is not there',
      'PUT',
      '/boot-source',
      { kernel_image_path: '/no/kernel' },
      'Boot source error: The kernel file cannot be opened: No such file or directory (os error 2)',
    ],
    [
      'a disk that is not there',
      'PUT',
      '/drives/d_1',
      { drive_id: 'd_1', is_root_device: false, path_on_host: '/no/disk' },
      /^Drive config error: Unable to create the virtio block device: Virtio backend error: Error manipulating the backing file: .*\/no\/disk/,
    ],
    [
      'a start without a kernel',
      'PUT',
      '/actions',
      { action_type: 'InstanceStart' },
      'Start microvm error: Cannot start microvm without kernel configuration.',
    ],
    ['a pause before the start', 'PATCH', '/vm', { state: 'Paused' }, BEFORE],
    ['keys before the start', 'PUT', '/actions', { action_type: 'SendCtrlAltDel' }, BEFORE],
  ];
  test.each(wrong)('refuses %s', async (_, method, path, body, words) => {
    const wanted = path === '/drives/other' || path === '/drives/d-1' ? { ...(body as object), path_on_host: join(folder, 'disk') } : body;
    const answer = await request(socket, method, path, wanted);
    expect(answer.status).toBe(400);
    const { fault_message: said } = answer.body as { fault_message: string };
    if (typeof words === 'string') expect(said).toBe(words);
    else expect(said).toMatch(words);
  });

  test('binds the vsock socket when it is told of it, and never unlinks it', async () => {
    const uds = join(folder, 'v');
    expect((await put('/vsock', { guest_cid: 3, uds_path: uds })).status).toBe(204);
    expect((await stat(uds)).isSocket()).toBe(true);
    await stop();
    expect([existsSync(uds), existsSync(socket)]).toEqual([true, true]);
  });

  test('refuses a vsock path that is taken', async () => {
    const uds = join(folder, 'v');
    const taken = createServer().listen(uds);
    await once(taken, 'listening');
    const { body } = await put('/vsock', { guest_cid: 3, uds_path: uds });
    taken.close();
    const { fault_message: said } = body as { fault_message: string };
    expect(said).toMatch(
      /^Vsock config error: Cannot create backend for vsock device: Error binding to the host-side Unix socket: Address (already )?in use/,
    );
  });

  test('warns of a field that is going away', async () => {
    const body = JSON.stringify({ guest_cid: 3, uds_path: join(folder, 'v'), vsock_id: 'x' });
    const answer = await sendRaw(socket, `PUT /vsock HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    expect(answer).toMatch(/^HTTP\/1\.1 204 .*\r\nDeprecation: true\r\n/s);
  });

  test('ends with 1 where a socket is in its place', async () => {
    const second = spawn(child?.spawnfile ?? '', ['--id', 'test-2', '--api-sock', socket], { stdio: 'ignore' });
    const [code] = (await once(second, 'exit')) as [number | null];
    expect(code).toBe(1);
    expect((await put('/entropy', {})).status).toBe(204);
  });

  test('ends with 153 at an argument that it does not know', async () => {
    const second = spawn(child?.spawnfile ?? '', ['--no-such-flag', 'x', '--api-sock', join(folder, 'b')], { stdio: 'ignore' });
    const [code] = (await once(second, 'exit')) as [number | null];
    expect(code).toBe(153);
  });

  testStarted('takes no configuration once it has started', async () => {
    await started();
    const later: readonly [string, unknown][] = [
      ['/boot-source', { kernel_image_path: join(folder, 'kernel') }],
      ['/machine-config', { vcpu_count: 1, mem_size_mib: 128 }],
      ['/vsock', { guest_cid: 3, uds_path: join(folder, 'v') }],
      ['/entropy', {}],
      ['/serial', {}],
      ['/logger', { level: 'Error' }],
      ['/actions', { action_type: 'InstanceStart' }],
    ];
    for (const [path, body] of later) expect([path, (await put(path, body)).body]).toEqual([path, { fault_message: AFTER }]);
  });

  testStarted('pauses and resumes, again and again', async () => {
    await started();
    for (const state of ['Paused', 'Paused', 'Resumed', 'Resumed'])
      expect((await request(socket, 'PATCH', '/vm', { state })).status).toBe(204);
  });

  testSimulated(
    'dials of the host wait without a word until the guest has its driver, and end without one where nobody listens',
    async () => {
      const uds = join(folder, 'v');
      expect((await put('/vsock', { guest_cid: 3, uds_path: uds })).status).toBe(204);
      const early = sendRaw(uds, 'CONNECT 5\n', 300);
      expect(await early).toBe('');
      const waiting = connect(uds);
      waiting.on('error', () => undefined);
      waiting.write('CONNECT 5\n');
      await put('/drives/d_1', drive());
      await started();
      await once(waiting, 'close');
    },
  );

  testSimulated('dials of the host to a port of the guest get the number of theirs, then bytes both ways', async () => {
    await stop();
    await rm(socket);
    child = await start({ echoPort: 5 });
    const uds = join(folder, 'v');
    await put('/vsock', { guest_cid: 3, uds_path: uds });
    await started();
    expect(await sendRaw(uds, 'CONNECT 5\nhello', 300)).toBe('OK 1073741824\nhello');
    expect(await sendRaw(uds, 'connect 5\n', 300)).toBe('OK 1073741825\n');
    for (const bad of ['CONNECT 6\n', 'HELLO 5 WORLD\n', `CONNECT ${'5'.repeat(40)}`]) expect(await sendRaw(uds, bad, 300)).toBe('');
  });
});

function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('error', () => resolve(false));
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MAX_QMP_EVENTS, MAX_QMP_LINE_BYTES, QmpClient } from '../../src/qemu-driver/qmp-client.ts';

let folder = '';
let server: Server;
let qemu: Socket;
let client: QmpClient;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-qmp-'));
  server = createServer();
  server.listen(join(folder, 'q'));
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  qemu = connect(join(folder, 'q'));
  const [socket] = (await accepted) as [Socket];
  client = new QmpClient(socket);
});
afterEach(async () => {
  client.close();
  qemu.destroy();
  server.close();
  await rm(folder, { recursive: true, force: true });
});

/** Answers each command as `answer` says. */
function answerWith(answer: (command: { execute: string; id: number }) => string): void {
  let text = '';
  qemu.on('data', (part: Buffer) => {
    text += part.toString();
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      qemu.write(answer(JSON.parse(text.slice(0, end)) as { execute: string; id: number }));
      text = text.slice(end + 1);
    }
  });
}

describe('the monitor of a QEMU', () => {
  it('answers commands between greeting, events and lines of anybody', async () => {
    qemu.write('{"QMP":{"version":{}}}\r\n');
    answerWith(
      ({ id, execute }) => `garbage\n[1]\n{"event":"RESUME"}\n{"return":"late","id":99}\n{"return":{"of":"${execute}"},"id":${id}}\n`,
    );
    await client.start();
    expect(await client.execute('query-status')).toEqual({ of: 'query-status' });
    expect(client.events.map((event) => event.name)).toEqual(['RESUME', 'RESUME']);
  });

  it('keeps the reason of a shutdown', async () => {
    answerWith(({ id }) => `{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-panic"}}\n{"return":{},"id":${id}}\n`);
    await client.start();
    expect(client.events).toEqual([{ name: 'SHUTDOWN', reason: 'guest-panic' }]);
  });

  it('rejects a command that is refused, with what it was told', async () => {
    answerWith(({ id }) => `{"error":{"class":"CommandNotFound","desc":"no such thing"},"id":${id}}\n`);
    await expect(client.execute('nothing')).rejects.toMatchObject({
      code: 'qmp_failed',
      message: expect.stringContaining('no such thing'),
    });
  });

  it('keeps a bounded number of events', async () => {
    answerWith(({ id }) => `${'{"event":"BALLOON_CHANGE"}\n'.repeat(10_000)}{"return":{},"id":${id}}\n`);
    await client.start();
    expect(client.events).toHaveLength(MAX_QMP_EVENTS);
  });

  it('ends at a line that does not end, and rejects what waits', async () => {
    answerWith(() => 'x'.repeat(MAX_QMP_LINE_BYTES + 1));
    await expect(client.execute('query-status')).rejects.toMatchObject({ code: 'qmp_failed', message: expect.stringContaining('65536') });
    await expect(client.execute('query-status')).rejects.toMatchObject({ code: 'qmp_failed' });
  });

  it('rejects what waits when QEMU goes', async () => {
    answerWith(() => '');
    const waiting = client.execute('query-status');
    qemu.destroy();
    await expect(waiting).rejects.toMatchObject({ code: 'qmp_failed', message: expect.stringMatching(/the monitor (was closed|failed)/) });
  });
});

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BootSpec, callerPathBinds, findMarked, killMarked, ProcessDriver, probeBubblewrap } from '../../src/index.ts';
import { shell } from '../../src/testing/driver-rig.ts';
import { buildGuestPayload, type GuestPayload } from '../guest-payload.ts';

const bubblewrap = await probeBubblewrap();
const reason = bubblewrap.usable ? '' : ` (${bubblewrap.reason})`;
const withBubblewrap = bubblewrap.usable ? it : it.skip;

let payload: GuestPayload;
beforeAll(async () => {
  payload = await buildGuestPayload();
});
afterAll(() => payload.remove());

function newSpec(over: Partial<BootSpec> = {}): BootSpec {
  return {
    vmId: 'vm',
    folder: join(payload.folder, randomUUID().slice(0, 8)),
    guestAgent: { node: process.execPath, bundle: payload.bundle },
    bindPaths: [],
    path: '/usr/bin:/bin',
    caBundle: null,
    limits: { memoryMib: 512, diskMib: 64 },
    allowUnisolated: false,
    attemptMarker: randomUUID(),
    onStream: () => undefined,
    onRefused: () => undefined,
    ...over,
  };
}

/** A process that boots a VM, starts a command in it, says so, and stays. */
const HOST = `
  import { ProcessDriver, startExec } from '@firecrew/vmm';
  const { spec, bubblewrap } = JSON.parse(process.argv[1]);
  const vm = await new ProcessDriver({ bubblewrap }).boot({ ...spec, onStream() {}, onRefused() {} });
  const argv = ['/bin/sh', '-c', 'setsid sleep 4730 & exec sleep 4731'];
  await startExec(await vm.session(), { id: 'one', argv, cwd: '/', timeoutMs: 600000 });
  console.log('up');
  setInterval(() => {}, 1000);
`;

describe('a host process that is killed', () => {
  const modes = [
    { mode: `under bubblewrap${reason}`, use: 'auto', test: withBubblewrap },
    { mode: 'without isolation', use: 'off', test: it },
  ] as const;
  for (const { mode, use, test } of modes) {
    test(`takes its guest with it ${mode}`, async () => {
      const spec = newSpec({ allowUnisolated: true });
      const cwd = new URL('../..', import.meta.url);
      const argument = JSON.stringify({ spec, bubblewrap: use });
      const host = spawn(process.execPath, ['--input-type=module', '-e', HOST, argument], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
      try {
        await once(host.stdout, 'data');
        // The shell has been started when the host says so, and what it starts may not have been.
        while (findMarked(spec.attemptMarker).length < 3) await delay(10);
        host.kill('SIGKILL');
        await once(host, 'exit');
        while (findMarked(spec.attemptMarker).length > 0) await delay(10);
      } finally {
        host.kill('SIGKILL');
        await killMarked(spec.attemptMarker);
        await rm(spec.folder, { recursive: true, force: true });
      }
    });
  }
});

describe('what a guest is made of', () => {
  it('without bubblewrap nothing is booted unless that is allowed', async () => {
    const spec = newSpec();
    await expect(new ProcessDriver({ bubblewrap: 'off' }).boot(spec)).rejects.toMatchObject({ code: 'isolation_missing' });
    await expect(new ProcessDriver({ places: ['/no/such/bwrap'] }).probe()).resolves.toMatchObject({
      available: true,
      isolation: 'none',
      detail: 'no isolation: bubblewrap is missing',
    });
    expect(existsSync(spec.folder)).toBe(false);
  });

  it.each([
    { what: 'a relative folder', over: { folder: 'x' } },
    { what: 'a mark with a space', over: { attemptMarker: 'two words' } },
    { what: 'a short mark', over: { attemptMarker: 'short' } },
    { what: 'a relative bind', over: { bindPaths: [{ source: '/usr', target: 'x' }] } },
  ])('$what is refused before anything is made', async ({ over }) => {
    await expect(new ProcessDriver({ bubblewrap: 'off' }).boot(newSpec(over))).rejects.toMatchObject({ code: 'bad_boot_spec' });
  });

  it('a layer is refused: a sandbox has no disk to lie on it', async () => {
    const handle = await open('/dev/null');
    const layer = { path: '/dev/null', handle };
    await expect(new ProcessDriver({ bubblewrap: 'off' }).boot(newSpec({ layer }))).rejects.toMatchObject({ code: 'bad_boot_spec' });
    await handle.close();
  });

  it('a folder that holds something is refused and left as it is', async () => {
    const spec = newSpec({ allowUnisolated: true });
    mkdirSync(spec.folder);
    writeFileSync(join(spec.folder, 'mine'), 'kept');
    await expect(new ProcessDriver({ bubblewrap: 'off' }).boot(spec)).rejects.toMatchObject({ code: 'bad_boot_spec' });
    expect(existsSync(join(spec.folder, 'mine'))).toBe(true);
    await rm(spec.folder, { recursive: true });
  });

  withBubblewrap(`the programs of a caller PATH run in the guest, links included${reason}`, async () => {
    const home = join(payload.folder, 'home');
    const tool = join(home, '.local/share/tool/bin/tool');
    mkdirSync(join(home, '.local/share/tool/bin'), { recursive: true });
    mkdirSync(join(home, '.local/bin'), { recursive: true });
    writeFileSync(tool, '#!/bin/sh\necho tool ran\n');
    writeFileSync(join(home, 'secret'), 'secret');
    chmodSync(tool, 0o755);
    symlinkSync(tool, join(home, '.local/bin/tool'));
    const app = join(payload.folder, 'app');
    mkdirSync(join(app, 'bin'), { recursive: true });
    mkdirSync(join(app, 'lib'));
    mkdirSync(join(payload.folder, 'store/v3/bin'), { recursive: true });
    writeFileSync(join(payload.folder, 'store/v3/bin/linked'), '#!/bin/sh\necho linked ran\n', { mode: 0o755 });
    symlinkSync('v3', join(payload.folder, 'store/latest'));
    symlinkSync(join(payload.folder, 'store/latest'), join(app, 'current'));
    symlinkSync('../current/bin/linked', join(app, 'bin/linked'));
    const { binds, path } = await callerPathBinds(`${home}/.local/bin:${app}/bin:/usr/bin:/bin`, [home]);
    const ca = join(payload.folder, 'ca.pem');
    writeFileSync(ca, 'roots');
    const vm = await new ProcessDriver().boot(newSpec({ bindPaths: binds, path, caBundle: ca }));
    try {
      const { output } = await shell(
        vm,
        `tool; linked; /opt/firecrew/bin/node --version; cat "$NODE_EXTRA_CA_CERTS"; echo; ls -A ${home}; getent passwd $(id -u)`,
      );
      expect(output.split('\n')).toEqual([
        'tool ran',
        'linked ran',
        process.version,
        'roots',
        '.local',
        'agent:x:1000:1000:agent:/home/agent:/bin/sh',
        '',
      ]);
      expect((await shell(vm, 'head -c 100000000 /dev/zero > /tmp/full')).exitCode).not.toBe(0);
      expect((await shell(vm, 'unshare -Ur true 2>/dev/null')).exitCode === 0).toBe(bubblewrap.usable && !bubblewrap.disableUserns);
    } finally {
      await vm.destroy();
      await rm(home, { recursive: true });
    }
  });
});

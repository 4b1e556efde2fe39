import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { makeRepository } from './support/repository.ts';
import { testVmStore } from './support/vm-store.ts';

/** A mission without a check boots two VMs with the probe's; emulated on a busy machine each may take half a minute. */
const MISSION_MS = 400_000;

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

describe.skipIf(missing !== '')(`a model call from a VM under emulation${missing}`, { timeout: MISSION_MS + 20_000 }, () => {
  const credential = `sk-test-${randomBytes(24).toString('base64url')}`;
  const credentialFile = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}`);
  let installation: Installation;
  let upstream: ModelUpstream;
  beforeAll(async () => {
    if ('missing' in store) throw new Error(store.missing);
    await writeCredential(credentialFile, credential);
    upstream = await ModelUpstream.start();
    const route = { format: 'anthropic_messages', upstream: upstream.url, caFile: UPSTREAM_CA, credential: { file: credentialFile } };
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: { qemu: { accelerator: 'tcg', store: store.root }, modelRoutes: { command: route } },
      server: { driverFloor: 'qemu' },
    });
  }, MISSION_MS);
  afterAll(async () => {
    await installation.stop();
    await upstream.stop();
    await rm(credentialFile);
  }, MISSION_MS);

  it('reaches the upstream over the link of the VM, with the credential of the host', async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', 'vm'), { 'a.txt': 'a\n' });
    const body = JSON.stringify({ model: 'm-1', max_tokens: 10, stream: true, messages: [{ role: 'user', content: 'hi' }] });
    const script = `fetch(process.env.FIRECREW_MODEL_URL + "/v1/messages", { method: "POST", headers: { "content-type": "application/json" }, body: process.argv[1] }).then((r) => r.text()).then(console.log)`;
    const { id } = await installation.startMission({
      repository,
      agent: `node -e '${script}' '${body}' | tee answer.txt`,
      extra: { driver: 'qemu' },
    });
    const { end } = await installation.ended(id, MISSION_MS);
    expect(end, installation.node.logTail()).toMatchObject({ missionState: 'completed' });
    expect((await installation.log(id, 1)).toString()).toMatch(/event: message_start[\s\S]*event: message_stop/);
    expect(upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([credential]);
  });
});

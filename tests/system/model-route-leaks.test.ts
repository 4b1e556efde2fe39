import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { brokerPid, coreLimit } from './support/broker-process.ts';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { findLeaks, readDatabase, readFolder } from './support/leak-search.ts';
import { ModelUpstream, UPSTREAM_CA, type UpstreamRequest } from './support/model-upstream.ts';
import { countInMemory, findInMemory } from './support/process-memory.ts';
import { makeRepository } from './support/repository.ts';

/** With characters that each encoding writes in another way. */
const secret = `sk-${randomBytes(12).toString('hex')}/+_-.${randomBytes(12).toString('base64url')}`;

/** Every form in which an upstream could show what it was sent. */
const ECHOES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => Buffer.from(text).toString('base64'),
  (text) => Buffer.from(`x${text}`).toString('base64'),
  (text) => Buffer.from(`xy${text}z`).toString('base64url'),
  (text) => Buffer.from(text).toString('hex'),
  (text) => Buffer.from(text).toString('hex').toUpperCase(),
  (text) => encodeURIComponent(text),
  (text) => Buffer.from(text).toString('hex').replace(/../g, '%$&'),
  (text) => JSON.stringify({ text }),
];

/** Echoes the credential in headers and in the body, cut in the middle, with the status that the path of the request asks for. */
function echo(request: UpstreamRequest, response: ServerResponse): void {
  const credential = String(request.headers['x-api-key']);
  const { max_tokens: number } = request.body === '' ? { max_tokens: 1 } : JSON.parse(request.body);
  if (number === 7) {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(gzipSync(credential));
    return;
  }
  const status = [200, 400, 401, 403, 500, 529][number % 6] ?? 200;
  const type = number % 2 === 0 ? 'text/event-stream' : 'application/json';
  response.writeHead(status, {
    'content-type': type,
    'request-id': credential,
    'x-request-id': Buffer.from(credential).toString('base64'),
    'set-cookie': `k=${credential}`,
    location: `/?k=${encodeURIComponent(credential)}`,
  });
  for (const form of ECHOES) {
    const text = form(credential);
    response.write(`data: ${text.slice(0, 9)}`);
    response.write(`${text.slice(9)}\n\n`);
  }
  response.addTrailers({ 'x-key': credential });
  response.end();
}

/** Reads what there is to read, asks whom there is to ask, and brings all of it back as files and as output. */
const HUNT = `
  mkdir -p hunt
  post() { curl -sSi --noproxy '*' -m 20 -H 'content-type: application/json' -d "{\\"model\\":\\"m\\",\\"max_tokens\\":$1,\\"messages\\":[]}" "$FIRECREW_MODEL_URL/v1/messages"; }
  for n in 1 2 3 4 5 6 7 8; do post $n; done > hunt/echoes 2>&1
  { post 9 & post 10 & wait; } >> hunt/echoes 2>&1
  curl -sSi --noproxy '*' -m 20 "$FIRECREW_MODEL_URL/v1/models" -H 'x-api-key;' >> hunt/echoes 2>&1
  curl -sSi --noproxy '*' -m 20 "$FIRECREW_MODEL_URL/../../etc/passwd" >> hunt/echoes 2>&1
  curl -sSi -m 20 --proxy "$HTTPS_PROXY" http://127.0.0.1/ >> hunt/echoes 2>&1
  curl -sSi -m 20 --proxy "$HTTPS_PROXY" https://localhost:1/ >> hunt/echoes 2>&1
  env > hunt/environment
  for p in /proc/[0-9]*; do cat $p/environ $p/cmdline $p/maps $p/status; ls -l $p/fd; strings $p/mem; done > hunt/processes 2>/dev/null
  cat /proc/net/unix /proc/net/tcp /proc/self/mountinfo > hunt/kernel 2>/dev/null
  find / "$HOME" /tmp /run "$FIRECREW_AGENT_DIR" -xdev \\( -path /proc -o -path /sys -o -path /usr -o -path /lib -o -path /opt -o -path "$PWD" \\) -prune -o -type f -size -2000k -print 2>/dev/null | head -3000 | while read -r f; do echo "== $f"; cat "$f"; done > hunt/files 2>/dev/null
  cat hunt/echoes hunt/environment hunt/kernel
  exit 0`;

const missing = await withoutIsolation();

describe.skipIf(missing !== '')(`the credential of a model route${missing}`, () => {
  let installation: Installation;
  let upstream: ModelUpstream;
  let operator: string;

  beforeAll(async () => {
    operator = await mkdtemp(join(tmpdir(), 'fc-operator-'));
    // The account of the broker has to walk through.
    await chmod(operator, 0o711);
    await writeCredential(join(operator, 'credential'), `${secret}\n`);
    upstream = await ModelUpstream.start(echo);
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: {
        logLevel: 'trace',
        modelRoutes: {
          command: {
            format: 'anthropic_messages',
            upstream: upstream.url,
            caFile: UPSTREAM_CA,
            credential: { file: join(operator, 'credential') },
          },
        },
      },
    });
  });
  afterAll(async () => {
    await installation.stop();
    await upstream.stop();
    await rm(operator, { recursive: true });
  });

  it('is nowhere that a hostile agent can read and in nothing that is stored, however it is echoed', async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', 'hunt'), { 'a.txt': 'a\n' });
    const { id } = await installation.startMission({
      repository,
      agent: `${HUNT.replace('exit 0', '')} say hunted; until is_open go; do sleep 0.2; done`,
    });
    const attempt = await installation.attempt(id);
    await installation.witness.waitFor('hunted');
    // While it runs: the node's folder with that of the turn, and the processes of the host.
    const shim = await installation.shimPid(attempt);
    const broker = await brokerPid(installation.node.pid);
    const running = await readFolder(join(installation.home, 'node'));
    const others = [shim, installation.node.pid, installation.server.pid];
    const processes = await Promise.all(
      [broker, ...others].flatMap((pid) =>
        ['environ', 'cmdline'].map(async (name) => ({ name: `/proc/${pid}/${name}`, records: [await readFile(`/proc/${pid}/${name}`)] })),
      ),
    );
    // One process holds it, of which no memory goes to a disk: what searches others for it finds it there.
    expect(countInMemory(broker, secret)).toBeGreaterThan(0);
    expect(others.map((pid) => countInMemory(pid, secret))).toEqual([0, 0, 0]);
    expect(coreLimit(broker)).toMatch(/^[01]$/);
    const handles = findInMemory(shim, /Handle ([A-Za-z0-9_-]{43})/g);
    expect(handles.size).toBe(1);
    const [handle = ''] = handles;
    expect(findInMemory(broker, new RegExp(`(${handle})`, 'g')).size).toBe(1);
    installation.witness.open('go');
    const { end } = await installation.ended(id);
    expect(end.missionState).toBe('completed');
    // It was used, and echoed.
    expect(upstream.requests.length).toBeGreaterThanOrEqual(10);
    expect(upstream.requests.every(({ headers }) => headers['x-api-key'] === secret)).toBe(true);
    const log = await installation.log(id, 1);
    const said = {
      name: 'what the API says',
      records: [log, Buffer.from(JSON.stringify([await installation.events(id), await installation.client.mission(id)]))],
    };
    const stored = [...(await readFolder(installation.home)), ...(await readDatabase(installation.databaseUrl))];
    // What was searched holds what the agent found: a search of nothing finds nothing.
    expect(
      findLeaks('FIRECREW_ATTEMPT', stored)
        .map(({ where }) => where)
        .join('\n'),
    ).toMatch(/blobs.*zstd/);
    for (const hidden of [secret, handle]) expect(findLeaks(hidden, [...running, ...processes, said, ...stored])).toEqual([]);
    // What was taken out left its mark.
    expect(log.toString()).toMatch(/HTTP\/1\.1 401[\s\S]*\*{20}/);
  });

  it('is reported with its backend, within the request, when the provider refuses it', async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', 'refused'), { 'a.txt': 'a\n' });
    const agent = `curl -sS --noproxy '*' -H 'content-type: application/json' -d '{"model":"m","max_tokens":2,"messages":[]}' "$FIRECREW_MODEL_URL/v1/messages" > b.txt`;
    const { id } = await installation.startMission({ repository, agent });
    await installation.ended(id);
    const notices = (await installation.events(id)).flatMap((event) =>
      event.kind === 'turn.event' && event.body.kind === 'notice' ? [event.body] : [],
    );
    expect(notices.filter(({ code }) => code === 'model_credential_refused')).toMatchObject([
      { level: 'error', message: expect.stringMatching(/model route of command \(status 401\)/) },
    ]);
  });
});

describe('the search for leaks', () => {
  const name = 'planted';
  it.each<readonly [string, readonly (string | Buffer)[]]>([
    ['as it is', [`a${secret}b`]],
    ['base64', [Buffer.from(`k:${secret}`).toString('base64')]],
    ['base64 at another place', [Buffer.from(`kk:${secret}!`).toString('base64')]],
    ['base64 over lines', [Buffer.from(`key: ${secret}`).toString('base64').replace(/.{20}/g, '$&\n')]],
    ['base64url', [Buffer.from(`?${secret}`).toString('base64url')]],
    ['hex', [Buffer.from(secret).toString('hex')]],
    ['hex of a dump', [Buffer.from(secret).toString('hex').toUpperCase().replace(/../g, '$& ')]],
    ['URL-encoded', [encodeURIComponent(secret)]],
    ['JSON escapes', [`"${Buffer.from(secret).toString('hex').replace(/../g, '\\u00$&')}"`]],
    ['gzip', [Buffer.concat([Buffer.from('before'), gzipSync(`x${secret}y`)])]],
    ['gzip of base64', [gzipSync(Buffer.from(secret).toString('base64'))]],
    ['split over two records', [`{"a":1}${secret.slice(0, 10)}`, `${secret.slice(10)}{"b":2}`]],
    [
      'base64 split over two records',
      [Buffer.from(secret).toString('base64').slice(0, 9), Buffer.from(secret).toString('base64').slice(9)],
    ],
    ['gzip split over two records', [gzipSync(secret).subarray(0, 12), gzipSync(secret).subarray(12)]],
  ])('finds one that is planted as %s', (_form, records) => {
    expect(findLeaks(secret, [{ name, records: records.map((record) => Buffer.from(record)) }])).not.toEqual([]);
  });

  it('finds one that is planted in a file and in the folders below, and none where there is none', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fc-leak-'));
    try {
      await mkdir(join(folder, 'a/b'), { recursive: true });
      await writeFile(join(folder, 'a/b/c'), secret.slice(0, -1));
      expect(findLeaks(secret, await readFolder(folder))).toEqual([]);
      await writeFile(join(folder, 'a/b/c'), secret);
      expect(findLeaks(secret, await readFolder(folder))).toMatchObject([{ form: 'plain' }]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

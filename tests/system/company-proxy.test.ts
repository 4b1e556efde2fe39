import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompanyProxy, PROXY_LOGIN } from '@firecrew/egress-proxy/testing';
import type { EgressLine } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeCredential } from './support/credential-file.ts';
import { GIT_SERVER_CA, GIT_SERVER_LOGIN, GitServer } from './support/git-server.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { answerMessage, ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { git, makeRepository } from './support/repository.ts';

/** Tells the witness something through the egress proxy of its guest, then says what it was answered. */
const TELL = `const http = require('node:http');
const proxy = new URL(process.env.HTTPS_PROXY);
const target = 'localhost:' + process.argv[2];
const call = http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: target, headers: { host: target } });
call.on('connect', (answer, socket) => {
  console.log('answer ' + answer.statusCode + ' ' + answer.headers['x-firecrew-reason']);
  if (answer.statusCode === 200) socket.write('told-' + process.argv[2] + ' told\\n');
  setTimeout(() => process.exit(0), 300);
});
call.end();
`;

describe('a host that reaches the world through the proxy of its operator alone', () => {
  let folder: string;
  let proxy: CompanyProxy;
  let gitServer: GitServer;
  let installation: Installation;
  let remote: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcs-chain-'));
    proxy = await CompanyProxy.start();
    remote = join(folder, 'team', 'project.git');
    const source = await makeRepository(join(folder, 'source'), { 'tell.js': TELL });
    await mkdir(join(folder, 'team'));
    execFileSync('git', ['clone', '-q', '--bare', source, remote]);
    gitServer = await GitServer.start(folder);
    await writeFile(join(folder, 'password'), `${GIT_SERVER_LOGIN.password}\n`, { mode: 0o600 });
    await writeFile(join(folder, 'login'), `${PROXY_LOGIN}\n`, { mode: 0o600 });
    const egressProxy = { url: proxy.url, credential: { file: join(folder, 'login') } };
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: { egressProxy },
      server: {
        egressProxy: { ...egressProxy, mode: 'name-only' },
        git: {
          caFile: GIT_SERVER_CA,
          credentials: [
            { host: `localhost:${gitServer.port}`, username: GIT_SERVER_LOGIN.username, passwordFile: join(folder, 'password') },
          ],
        },
      },
    });
  });
  afterAll(async () => {
    await installation?.stop();
    await gitServer?.stop();
    await proxy?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function run() {
    const { witness } = installation;
    const { id } = await installation.client.createMission({
      title: 'Tell it',
      repository: { kind: 'url', url: gitServer.url('team/project.git'), branch: null, push: true },
      phases: [{ kind: 'coding', task: 'tell', doneWhenCheck: 'true' }],
      agent: { command: `node tell.js ${witness.port}; date > made` },
      egress: witness.egress,
      allowUnisolated: true,
    });
    const { end } = await installation.ended(id);
    return { id, end };
  }

  it('fetches, lets guests out and pushes through it, and tells its login to nobody else', async () => {
    const { id, end } = await run();
    expect(end).toMatchObject({ outcome: { kind: 'completed' }, delivery: { state: 'delivered', pushed: 'pushed' } });
    const branch = end.delivery?.branch ?? '';
    expect((await git(remote, 'rev-parse', `refs/heads/${branch}`)).trim()).toBe(end.delivery?.commit);
    // The guest's tunnel: the address that was judged. Git of the server: the name, which the proxy resolves.
    expect(proxy.asked).toContain(`127.0.0.1:${installation.witness.port}`);
    expect(proxy.asked).toContain(`localhost:${gitServer.port}`);
    expect(installation.witness.saw('told')).toHaveLength(1);
    const events = await installation.events(id);
    const lines = events.flatMap((body): EgressLine[] =>
      body.kind === 'turn.event' && body.body.kind === 'egress' ? [body.body.line] : [],
    );
    expect(lines.map(({ event, via, address }) => [event, via, address])).toEqual([
      ['open', 'proxy', '127.0.0.1'],
      ['end', 'proxy', '127.0.0.1'],
    ]);
    const seen = [
      JSON.stringify(events),
      (await installation.log(id, 1)).toString(),
      installation.server.logTail(10_000),
      installation.node.logTail(10_000),
    ];
    for (const form of [PROXY_LOGIN, Buffer.from(PROXY_LOGIN).toString('base64')]) expect(seen.join('\n')).not.toContain(form);
    expect(installation.server.logTail(10_000)).toContain('"via":"name-only"');
  });

  it('tells a guest why there is no tunnel where the proxy takes no login', async () => {
    const { witness } = installation;
    await writeFile(join(folder, 'login'), 'robot:an-old-word\n', { mode: 0o600 });
    const repository = await makeRepository(join(folder, 'local'), { 'tell.js': TELL });
    const { id } = await installation.startMission({ repository, agent: `node tell.js ${witness.port}; date > made` });
    await installation.ended(id);
    expect((await installation.log(id, 1)).toString()).toContain('answer 502 chain_auth_refused');
  });
});

/** A name that the proxy alone knows. */
const MODEL_HOST = 'api.example.test';
const BODY = JSON.stringify({ model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
const CALL = `curl -sS --noproxy '*' -m 60 -w '\\n%{http_code}\\n' -H 'content-type: application/json' -d '${BODY}' "$FIRECREW_MODEL_URL/v1/messages"`;
const missing = await withoutIsolation();

describe.skipIf(missing !== '')(`a node whose provider of models is behind the proxy of its operator${missing}`, () => {
  const [old, next] = ['sk-of-yesterday-0123456', 'sk-of-today-0123456789'];
  let folder: string;
  let proxy: CompanyProxy;
  let upstream: ModelUpstream;
  let installation: Installation;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcs-models-'));
    await chmod(folder, 0o711);
    proxy = await CompanyProxy.start();
    proxy.names.set(MODEL_HOST, '127.0.0.1');
    upstream = await ModelUpstream.start();
    await writeCredential(join(folder, 'login'), `${PROXY_LOGIN}\n`);
    // A login that gives the token of the day, and notes each run.
    await writeFile(join(folder, 'token'), old, { mode: 0o600 });
    await writeFile(join(folder, 'sign-in'), `#!/bin/sh\necho run >> ${folder}/runs\ncat ${folder}/token\n`, { mode: 0o700 });
    installation = await Installation.start({
      bubblewrap: 'auto',
      node: {
        egressProxy: { url: proxy.url, credential: { file: join(folder, 'login') } },
        modelRoutes: {
          command: {
            format: 'anthropic_messages',
            upstream: `https://${MODEL_HOST}:${new URL(upstream.url).port}`,
            caFile: UPSTREAM_CA,
            credential: { command: [join(folder, 'sign-in')], everySeconds: 86_400 },
          },
        },
      },
    });
  });
  afterAll(async () => {
    await installation?.stop();
    await upstream?.stop();
    await proxy?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function run(agent: string) {
    const repository = await makeRepository(join(folder, `r${Math.random()}`), { 'a.txt': 'a\n' });
    const { id } = await installation.startMission({ repository, agent: `${agent}; date > made` });
    const { end } = await installation.ended(id);
    const notices = (await installation.events(id)).flatMap((body) =>
      body.kind === 'turn.event' && body.body.kind === 'notice' ? [body.body.code] : [],
    );
    return { end, notices, log: (await installation.log(id, 1)).toString() };
  }

  it('runs the login again when its token is refused, once, says so, and goes on with the next one', async () => {
    await writeFile(join(folder, 'token'), next, { mode: 0o600 });
    upstream.answer = (request, response) =>
      request.headers['x-api-key'] === next ? answerMessage(request, response) : void response.writeHead(401).end('{}');
    // Another agent would give up, or ask again at once: that one is held back until there is another token.
    const { log, notices } = await run(`${CALL}; ${CALL}; ${CALL}`);
    expect(log.match(/^\d{3}$/gm)).toEqual(['401', '200', '200']);
    expect(upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([old, next, next]);
    expect(notices.filter((code) => code === 'model_credential_refused')).toHaveLength(1);
    expect(await readFile(join(folder, 'runs'), 'utf8')).toBe('run\nrun\n');
    // Every call went through the proxy, by name.
    expect(new Set(proxy.asked)).toEqual(new Set([`${MODEL_HOST}:${new URL(upstream.url).port}`]));
    expect(`${log}${installation.node.logTail(10_000)}`).not.toMatch(/sk-of-|word-of-the-company/);
  });

  it('tells an agent that the proxy took no login, and that it is not the provider that refused', async () => {
    upstream.requests.length = 0;
    await writeCredential(join(folder, 'login'), 'robot:an-old-word\n');
    const { log, notices } = await run(CALL);
    expect(log).toMatch(/did not take the credential of the host.*\(chain_auth_refused\)[\s\S]*502/);
    expect(notices).not.toContain('model_credential_refused');
    expect(upstream.requests).toEqual([]);
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { createEgressProxy } from '@firecrew/egress-proxy';
import { credentialForms } from '@firecrew/model-route';
import {
  type Arrival,
  BODY,
  type Harness,
  type HarnessOptions,
  parseAnswer,
  requestBytes,
  SECRET,
  startHarness,
  until,
} from '../harness.ts';

/** One row of a file of egress cases that is about a model route; `tests/cases/README.md` says what each field means. */
export interface RouteCase {
  readonly id: string;
  readonly group: string;
  readonly kind: string;
  readonly input: string;
  readonly expect: string;
  readonly acceptable?: readonly string[];
  readonly allowList: readonly string[];
  readonly target?: string;
  readonly checks?: readonly string[];
}

/** How a case ended; one that cannot be run here was not run, which is never a pass. */
export type RouteCaseEnd = { readonly run: true; readonly ended: string } | { readonly run: false; readonly why: string };

const CHECKS = /^(?:never-dials:|upstream-header:)/;
const FIELDS = new Set(
  'id group kind input expect allowList why source target upstreamHost acceptable level requires checks note'.split(' '),
);

/** How an answer counts: what the route itself refused by its status, everything else came from the upstream. */
function outcomeOf(text: string, harness: Harness): string {
  const { status, head } = parseAnswer(text);
  const reason = /x-firecrew-reason: (\S+)/.exec(head)?.[1];
  if (reason === undefined) return harness.arrivals.length > 0 ? 'route-ok' : 'malformed';
  if (status === 413) return 'refused';
  return status === 403 ? 'deny' : 'malformed';
}

/** Each request that arrived has one credential, the host's, and names the upstream. */
function assertOneCredential(arrivals: readonly Arrival[]): void {
  for (const { rawHeaders, headers } of arrivals) {
    const names: readonly string[] = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
    assert.deepEqual(
      names.filter((name) => /^(?:x-api-key|authorization|x-goog-api-key)$/.test(name)),
      ['x-api-key'],
    );
    assert.equal(headers['x-api-key'], SECRET);
    assert.equal(headers.host, 'api.model.test');
  }
}

function assertChecks(entry: RouteCase, harness: Harness): void {
  assert.deepEqual(
    [...new Set(harness.lookedUp)].filter((name) => name !== 'api.model.test'),
    [],
    'another name was looked up',
  );
  for (const check of entry.checks ?? []) {
    if (check.startsWith('never-dials:')) assert.ok(!harness.lookedUp.includes(check.slice('never-dials:'.length)), check);
    const [name = '', value] = check.startsWith('upstream-header:') ? check.slice('upstream-header:'.length).split('=') : [];
    if (value !== undefined)
      assert.ok(
        harness.arrivals.every(({ headers }) => headers[name] === value),
        check,
      );
  }
}

async function withHarness<Value>(options: HarnessOptions, work: (harness: Harness) => Promise<Value>): Promise<Value> {
  const harness = await startHarness(options);
  try {
    return await work(harness);
  } finally {
    await harness.stop();
  }
}

async function curl(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<{ code: number; output: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'fc-route-'));
  await writeFile(join(folder, 'body.json'), JSON.stringify(BODY));
  try {
    return await new Promise((resolve) => {
      const options = { cwd: folder, env: { PATH: process.env.PATH ?? '', ...env } };
      execFile('curl', ['--max-time', '20', '-i', ...args], options, (error, output) =>
        resolve({ code: Number(error?.code ?? 0), output }),
      );
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

const post = (port: number, ...headers: string[]) => [
  '-sS',
  `http://127.0.0.1:${port}/v1/messages`,
  ...headers.flatMap((header) => ['-H', header]),
  '-d',
  '@body.json',
];

/** The scripts of a client that the cases put into words, by those words; each gives how it ended, and throws when that was not safe. */
const SCRIPTS: Readonly<Record<string, (entry: RouteCase) => Promise<string>>> = {
  'curl -sS http://127.0.0.1:${ROUTE}/v1/messages -H "x-api-key: placeholder" -d @body.json': (entry) =>
    curlCase(entry, ['x-api-key: placeholder']),
  'same with "X-API-KEY: a" and "x-api-key: b" (two lines)': (entry) => curlCase(entry, ['X-API-KEY: a', 'x-api-key: b']),
  'streamed answer with one event every 500 ms': async () => {
    // Each event waits for the guest to have the one before, which no buffer on the way would let happen.
    const next: (() => void)[] = [];
    const answer: HarnessOptions['answer'] = (_arrival, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const number of [1, 2, 3]) next.push(() => response.write(`event: e\ndata: ${number}\n\n`));
      next.push(() => response.end());
    };
    return await withHarness({ answer }, async (harness) => {
      const client = harness.connect();
      client.socket.write(requestBytes({ ...BODY, stream: true }));
      await until(() => next.length > 0, 'the request');
      for (const number of [1, 2, 3]) {
        next.shift()?.();
        await until(() => client.text().includes(`event: e\ndata: ${number}\n\n`), `event ${number}`);
      }
      next.shift()?.();
      await until(client.closed, 'the end');
      return outcomeOf(client.text(), harness);
    });
  },
  'guest closes the connection in the middle of a streamed answer': async () => {
    const answer: HarnessOptions['answer'] = (_arrival, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    };
    return await withHarness({ answer }, async (harness) => {
      const client = harness.connect();
      client.socket.write(requestBytes({ ...BODY, stream: true }));
      await until(() => client.text().includes('data: 1'), 'the first event');
      client.socket.destroy();
      await until(() => harness.arrivals[0]?.isClosed() === true, 'the end at the upstream');
      return 'survive';
    });
  },
  'upstream answers 302 to https://evil.test/': (entry) =>
    withHarness({ answer: (_arrival, response) => response.writeHead(302, { location: 'https://evil.test/' }).end() }, async (harness) => {
      const text = await harness.send(requestBytes());
      assert.equal(parseAnswer(text).status, 302);
      assertChecks(entry, harness);
      return outcomeOf(text, harness);
    }),
  'POST above the documented size cap': () =>
    withHarness({}, async (harness) => {
      const text = await harness.send(requestBytes().replace(/content-length: \d+/, `content-length: ${32 * 1024 * 1024 + 1}`));
      assert.deepEqual(harness.arrivals, []);
      return outcomeOf(text, harness);
    }),
  'two pipelined requests on one connection': () =>
    withHarness({}, async (harness) => {
      const text = await harness.send(requestBytes(BODY, { isLast: false }) + requestBytes());
      assert.equal(text.match(/HTTP\/1\.1 200/g)?.length, 2);
      assertOneCredential(harness.arrivals);
      return outcomeOf(text, harness);
    }),
  'HTTPS_PROXY and HTTP_PROXY set, ANTHROPIC_BASE_URL=http://127.0.0.1:${ROUTE}, no NO_PROXY': () =>
    withHarness({}, async (harness) => {
      const dialled: string[] = [];
      const egress = createEgressProxy({
        policy: createPolicy({ rules: loadAllowList(['api.example.test']), ownAddresses: ['127.0.0.1'] }),
        dial: ({ address }) => {
          dialled.push(address);
          throw new Error('nothing is dialled here');
        },
        audit: () => undefined,
        ids: { vm: 'vm_test' },
      });
      const front = createServer({ allowHalfOpen: true }, (socket) => egress.handle(socket)).listen(0, '127.0.0.1');
      await once(front, 'listening');
      try {
        const proxy = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
        const { output } = await curl(post(harness.port), { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, http_proxy: proxy, https_proxy: proxy });
        assert.deepEqual(dialled, []);
        return harness.arrivals.length === 1 ? 'route-ok' : /x-firecrew-reason/.test(output) ? 'deny' : 'nothing';
      } finally {
        await egress.close();
        front.close();
      }
    }),
  'read the environment, files, process list and error pages of the guest and the recorded console for the credential': () => {
    const answer: HarnessOptions['answer'] = (arrival, response) => {
      response.writeHead(400, { 'content-type': 'text/plain', 'request-id': SECRET, 'x-echo': SECRET });
      for (const form of credentialForms(String(arrival.headers['x-api-key']))) {
        response.write(form.slice(0, 5));
        response.write(form.slice(5));
      }
      response.end();
    };
    return withHarness({ answer }, async (harness) => {
      const all = (await harness.send(requestBytes())) + JSON.stringify(harness.lines);
      for (const form of credentialForms(SECRET)) assert.ok(!all.includes(form), 'the credential came through');
      return 'never-leaks';
    });
  },
  'route used by a guest that has no credential configured': () =>
    withHarness({ credential: null }, async (harness) => {
      const text = await harness.send(requestBytes());
      const names = Object.keys(harness.arrivals[0]?.headers ?? {});
      assert.deepEqual(
        names.filter((name) => /key|auth|token|cookie/.test(name)),
        [],
      );
      return outcomeOf(text, harness);
    }),
};

async function curlCase(entry: RouteCase, headers: readonly string[]): Promise<string> {
  return await withHarness({}, async (harness) => {
    const { output } = await curl(post(harness.port, ...headers));
    assertOneCredential(harness.arrivals);
    assertChecks(entry, harness);
    return outcomeOf(output, harness);
  });
}

/** Runs one published case of the model route; throws when it did not end safely. */
export async function runRouteCase(entry: RouteCase): Promise<RouteCaseEnd> {
  const unknown = Object.keys(entry).filter((field) => !FIELDS.has(field));
  if (unknown.length > 0) return { run: false, why: `there is no field ${unknown.join(', ')}` };
  const checks = (entry.checks ?? []).filter((check) => !CHECKS.test(check));
  if (checks.length > 0) return { run: false, why: `there is no check ${checks.join(', ')}` };
  if (entry.kind === 'connect-bytes') return { run: true, ended: await runBytes(entry) };
  const script = entry.kind === 'client' ? SCRIPTS[entry.input] : undefined;
  if (script === undefined) return { run: false, why: 'nobody has made a program of these words' };
  if (entry.input.startsWith('curl') && (await curl(['--version'])).code !== 0) return { run: false, why: 'there is no curl' };
  return { run: true, ended: await script(entry) };
}

async function runBytes(entry: RouteCase): Promise<string> {
  return await withHarness({ limits: { idleMs: 200, headMs: 1_000 } }, async (harness) => {
    const text = await harness.send(Buffer.from(entry.input, 'latin1'));
    assertOneCredential(harness.arrivals);
    assertChecks(entry, harness);
    const ended = outcomeOf(text, harness);
    if (ended !== 'route-ok') assert.deepEqual(harness.arrivals, []);
    return ended;
  });
}

import { readFileSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startHelper } from '../support/processes.ts';
import { type BenchRow, measured } from '../support/row.ts';
import { memoryFolder } from '../support/sandbox.ts';
import { median, quantile } from '../support/timing.ts';

const PROCESS = new URL('../support/model-process.ts', import.meta.url);
const TLS = fileURLToPath(new URL('../../tests/system/support/tls/', import.meta.url));
const CALLS = 600;
const WARM_UP = 200;
/** Text of a conversation, in `bytes`: what an agent sends after some minutes of work. */
const LONG_BYTES = 200_000;

interface Times {
  readonly firstByte: number;
  readonly whole: number;
}

type Client = (body: string) => Promise<Times>;

function clientOf(port: number, ca: string | undefined): Client {
  const agent = ca === undefined ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true, ca, servername: 'localhost' });
  const send = ca === undefined ? httpRequest : httpsRequest;
  const headers = { 'content-type': 'application/json', 'x-api-key': 'guest' };
  return (body) =>
    new Promise((resolve, reject) => {
      const from = performance.now();
      let firstByte = 0;
      const onAnswer = (response: IncomingMessage) => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
        response.once('data', () => {
          firstByte = performance.now() - from;
        });
        response.resume().once('end', () => resolve({ firstByte, whole: performance.now() - from }));
      };
      const options = {
        agent,
        host: '127.0.0.1',
        port,
        path: '/v1/messages',
        method: 'POST',
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      };
      send(options, onAnswer).once('error', reject).end(body);
    });
}

/** Calls over the route and past it in turn, one at a time, so that what else the machine does falls on both. */
async function inTurn(ours: Client, direct: Client, body: string): Promise<{ ours: Times[]; direct: Times[] }> {
  const times = { ours: [] as Times[], direct: [] as Times[] };
  for (let call = 0; call < CALLS + WARM_UP; call += 1) {
    const [past, over] = [await direct(body), await ours(body)];
    if (call < WARM_UP) continue;
    times.direct.push(past);
    times.ours.push(over);
  }
  return times;
}

const bodyOf = (text: string, stream: boolean) =>
  JSON.stringify({ model: 'm-1', max_tokens: 100, stream, messages: [{ role: 'user', content: text }] });

/** The model route, with its closed list, budget, audit file and the broker of the node, against the same calls straight to the same upstream over TLS. */
export async function modelRouteSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  for (const name of ['cert', 'key']) await copyFile(join(TLS, `test-only-${name}.pem`), join(folder.path, `${name}.pem`));
  const upstream = await startHelper(PROCESS, ['upstream', folder.path]);
  const broker = await startHelper(PROCESS, ['broker', folder.path, String(upstream.ready.port)]);
  const route = await startHelper(PROCESS, ['route', folder.path]);
  try {
    const ours = clientOf(Number(route.ready.port), undefined);
    const direct = clientOf(Number(upstream.ready.port), readFileSync(join(folder.path, 'cert.pem'), 'utf8'));
    const short = await inTurn(ours, direct, bodyOf('hi', false));
    const stream = await inTurn(ours, direct, bodyOf('hi', true));
    const long = await inTurn(ours, direct, bodyOf('a word of a conversation, '.repeat(LONG_BYTES / 26), false));
    const added = (times: { ours: Times[]; direct: Times[] }, of: keyof Times, share = 0.5) =>
      quantile(
        times.ours.map((item) => item[of]),
        share,
      ) -
      quantile(
        times.direct.map((item) => item[of]),
        share,
      );
    const note = (times: { direct: Times[] }, of: keyof Times) => `direct ${median(times.direct.map((item) => item[of])).toFixed(2)} ms`;
    return [
      measured('model-route: added to a call, median', added(short, 'whole'), 'ms', { atMost: 1 }, note(short, 'whole')),
      measured(
        'model-route: added to the first byte of a stream, median',
        added(stream, 'firstByte'),
        'ms',
        { atMost: 2 },
        note(stream, 'firstByte'),
      ),
      measured('model-route: added to a call, 99 of 100', added(short, 'whole', 0.99), 'ms'),
      measured('model-route: added to a call of 200 kB, median', added(long, 'whole'), 'ms', undefined, note(long, 'whole')),
    ];
  } finally {
    await route.stop();
    await broker.stop();
    await upstream.stop();
    await folder.remove();
  }
}

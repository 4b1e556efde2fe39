// What is around the host of a world: its name server and the upstream that it may reach. It counts, and says the counts on each line of input.
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { decode, type Answer as Entry, encode } from 'dns-packet';
import { type Answer, FLIPS, NAME_SERVER, UPSTREAMS } from './answers.ts';
import { answerLines, listen } from './programs.ts';

const counts = { lookups: {} as Record<string, number>, unknown: 0, tunnels: 0 };

const files = new URL('../tls/', import.meta.url);
const key = readFileSync(new URL('test-only-key.pem', files));
const cert = readFileSync(new URL('test-only-cert.pem', files));
for (const address of UPSTREAMS) {
  const upstream = createServer({ key, cert }, (socket) => {
    counts.tunnels += 1;
    socket.on('error', () => undefined);
    socket.end(`upstream ${address}`);
  });
  upstream.on('tlsClientError', () => undefined);
  await listen(upstream, 443, address);
}

const names = createSocket('udp4');
names.on('message', (message, from) => {
  const { id, questions = [] } = decode(message);
  const [question] = questions;
  if (question === undefined) return;
  const answers = question.type === 'A' || question.type === 'AAAA' ? answersFor(question.name, question.type) : [];
  // NXDOMAIN is 3: the library has flags alone.
  const flags = answers === undefined ? 3 : 0;
  names.send(encode({ id: id ?? 0, type: 'response', flags, questions: [question], answers: answers ?? [] }), from.port, from.address);
});
await new Promise<void>((resolve) => names.bind(53, NAME_SERVER, resolve));

/** The records of one look-up, which is a question for A and one for AAAA after it; undefined for a name that is not known. */
function answersFor(name: string, type: 'A' | 'AAAA'): Entry[] | undefined {
  const flips = FLIPS[name];
  if (flips === undefined) {
    counts.unknown += 1;
    return undefined;
  }
  const seen = counts.lookups[name] ?? 0;
  if (type === 'A') counts.lookups[name] = seen + 1;
  const at = type === 'A' ? seen : Math.max(0, seen - 1);
  return recordsOf(name, type, flips[at % flips.length] ?? {});
}

function recordsOf(name: string, type: 'A' | 'AAAA', answer: Answer): Entry[] {
  const alias: Entry[] = answer.CNAME === undefined ? [] : [{ type: 'CNAME', name, ttl: 0, data: answer.CNAME }];
  return [...alias, ...(answer[type] ?? []).map((data): Entry => ({ type, name: answer.CNAME ?? name, ttl: 0, data }))];
}

answerLines(() => counts);

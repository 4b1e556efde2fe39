import {
  createClientHelloReader,
  createConnectHeadReader,
  createPolicy,
  decideAddress,
  decideHost,
  decideServerName,
  parseAllowList,
} from '../../src/index.ts';

/** What a decision needs of a row of `tests/cases/egress`; its README says what each field means. */
export interface EgressCase {
  readonly id: string;
  readonly group: string;
  readonly kind: string;
  readonly input: string;
  readonly inputGen?: { readonly unit: string; readonly count: number };
  readonly expect: string;
  readonly acceptable?: readonly string[];
  readonly allowList: readonly string[];
  readonly allowListGen?: { readonly prefix: string; readonly count: number; readonly suffix: string };
  readonly resolves?: readonly (readonly string[])[];
  readonly connect?: string;
  readonly firstBytesHex?: string;
  readonly delivery?: {
    readonly chunk?: number;
    readonly splitAt?: readonly number[];
    readonly holdOpen?: boolean;
    readonly closeAfter?: boolean;
  };
}

type Outcome = 'allow' | 'deny' | 'malformed' | 'config-error' | 'timeout';

/** Groups that are decisions; what needs a dialler, a clock, a client or a model route is run elsewhere. */
const DECISION_GROUPS = new Set([
  'ordinary-names',
  'suffix-confusion',
  'ip-literals',
  'hostname-characters',
  'ports',
  'request-line',
  'headers-and-framing',
  'tunnel-start',
  'limits-and-slowness',
  'resolved-addresses',
  'sni',
  'allow-list-entries',
]);
/** Cases of those groups that are about time, memory or a connection and so belong to the proxy. */
const NOT_A_DECISION = new Set(['ts-06', 'ts-09', 'ts-12', 'ls-03', 'ls-04', 'ls-11', 'ls-12', 'ls-16', 'ra-44', 'ra-52']);

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  PUBLIC_V4_A: '93.184.216.34',
  PUBLIC_V4_B: '93.184.216.35',
  PUBLIC_V6_A: '2606:2800:220:1:248:1893:25c8:1946',
  HOST_LAN_ADDRESS: '93.184.216.99',
};
const OWN_ADDRESSES = ['127.0.0.1', '::1', '93.184.216.99'];

function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function chunksOf(bytes: Uint8Array, size: number): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
  return chunks;
}

function listOf(entry: EgressCase): readonly string[] {
  const gen = entry.allowListGen;
  if (gen === undefined) return entry.allowList;
  return [...entry.allowList, ...Array.from({ length: gen.count }, (_, index) => `${gen.prefix}${index}${gen.suffix}`)];
}

/** How a case ends when the decisions alone are asked, one after the other as a proxy does. */
export function decideCase(entry: EgressCase): { outcome: Outcome; host?: string } {
  const list = parseAllowList(listOf(entry));
  if (!list.ok) return { outcome: 'config-error' };
  const policy = createPolicy({ rules: list.rules, ownAddresses: OWN_ADDRESSES });

  const bytes =
    entry.kind === 'connect-bytes'
      ? latin1(entry.input.replace('{GEN}', () => (entry.inputGen?.unit ?? '').repeat(entry.inputGen?.count ?? 0)))
      : new TextEncoder().encode(`CONNECT ${entry.connect ?? `${entry.input}:443`} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const reader = createConnectHeadReader();
  for (const chunk of chunksOf(bytes, entry.delivery?.chunk ?? (bytes.length || 1))) reader.push(chunk);
  const head = entry.delivery?.holdOpen === true && entry.kind !== 'sni' ? reader.push(new Uint8Array()) : reader.end();
  if (head.state === 'need-more') return { outcome: 'timeout' };
  if (head.state === 'malformed') return { outcome: head.reason === 'plain_http' ? 'deny' : 'malformed' };

  const target = decideHost({ policy, host: head.rawHost, port: head.port });
  if (target.verdict !== 'allowed') return { outcome: target.verdict === 'denied' ? 'deny' : 'malformed' };
  for (const text of entry.resolves?.[0] ?? []) {
    const address = decideAddress({ policy, host: target.host, address: PLACEHOLDERS[text] ?? text });
    if (address.verdict === 'denied') return { outcome: 'deny', host: target.host };
  }
  if (entry.kind !== 'sni') return { outcome: 'allow', host: target.host };
  return { outcome: judgeHello(entry, target.host), host: target.host };
}

function judgeHello(entry: EgressCase, host: string): Outcome {
  const bytes = Uint8Array.from((entry.firstBytesHex ?? '').match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  const reader = createClientHelloReader();
  for (const chunk of chunksOf(bytes, entry.delivery?.chunk ?? (bytes.length || 1))) reader.push(chunk);
  const read = reader.push(new Uint8Array());
  if (read.state === 'need-more') return 'timeout';
  if (read.state === 'malformed') return 'deny';
  return decideServerName({ host, serverName: read.hello.serverName }).verdict === 'allowed' ? 'allow' : 'deny';
}

/** Whether a case is a decision and nothing else. */
export function isDecision({ id, group }: EgressCase): boolean {
  return DECISION_GROUPS.has(group) && !NOT_A_DECISION.has(id);
}

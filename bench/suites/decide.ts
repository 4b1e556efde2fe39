import {
  createClientHelloReader,
  createConnectHeadReader,
  createPolicy,
  decideAddress,
  decideHost,
  decideServerName,
  loadAllowList,
} from '@firecrew/egress-policy';
import { type BenchRow, measured } from '../support/row.ts';
import { perSecond } from '../support/timing.ts';

const RULES = 500;
/** A ClientHello with one server name, as curl sends it. */
function helloFor(name: string): Uint8Array {
  const host = new TextEncoder().encode(name);
  const list = [0, ...u16(host.length), ...host];
  const extension = [0, 0, ...u16(list.length + 2), ...u16(list.length), ...list];
  const body = [3, 3, ...new Uint8Array(32), 0, 0, 4, 0x13, 0x01, 0x13, 0x02, 1, 0, ...u16(extension.length), ...extension];
  const handshake = [1, 0, ...u16(body.length), ...body];
  return Uint8Array.from([22, 3, 1, ...u16(handshake.length), ...handshake]);
}

const u16 = (value: number): [number, number] => [value >> 8, value & 255];

/** What one processor decides in a second. */
export async function decideSuite(): Promise<BenchRow[]> {
  const names = Array.from({ length: RULES }, (_, index) => `${index % 2 === 0 ? '.' : ''}host-${index}.example.com`);
  const policy = createPolicy({ rules: loadAllowList(names), ownAddresses: ['127.0.0.1'] });
  const head = new TextEncoder().encode(
    'CONNECT api.host-498.example.com:443 HTTP/1.1\r\nHost: api.host-498.example.com:443\r\nUser-Agent: curl\r\n\r\n',
  );
  const hello = helloFor('api.host-498.example.com');
  const allowed = decideHost({ policy, host: 'api.host-498.example.com', port: 443 });
  const read = createClientHelloReader().push(hello);
  if (allowed.verdict !== 'allowed' || read.state !== 'hello')
    throw new Error(`the bench does not measure what it says: ${allowed.verdict} ${read.state}`);
  const host = (text: string) => () => void decideHost({ policy, host: text, port: 443 });
  const note = `${RULES} entries`;
  return [
    measured('decide: hosts that are allowed', perSecond(host('api.host-498.example.com')), '/s', undefined, note),
    measured('decide: hosts that are refused', perSecond(host('elsewhere.example.net')), '/s', undefined, note),
    measured(
      'decide: addresses',
      perSecond(() => void decideAddress({ policy, host: 'api.host-498.example.com', address: '93.184.216.34' })),
      '/s',
    ),
    measured(
      'decide: CONNECT heads',
      perSecond(() => void createConnectHeadReader().push(head)),
      '/s',
    ),
    measured(
      'decide: ClientHellos',
      perSecond(() => void createClientHelloReader().push(hello)),
      '/s',
    ),
    measured(
      'decide: server names',
      perSecond(() => void decideServerName({ host: 'api.host-498.example.com', serverName: 'api.host-498.example.com' })),
      '/s',
    ),
  ];
}

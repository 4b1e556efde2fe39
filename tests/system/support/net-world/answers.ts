/** Where the upstream of a world listens, and where its name server does: the only addresses that may be reached. */
export const UPSTREAMS: readonly string[] = ['93.184.216.34', '93.184.216.35'];
export const NAME_SERVER = '93.184.216.53';
/** The address of the network card of the host in a world: public, and still the host's own. */
export const OWN_ADDRESS = '93.184.216.1';
/** What the certificate of the tests is for. */
const DOMAIN = 'pkg.example.test';
const [UPSTREAM = '', OTHER_UPSTREAM = ''] = UPSTREAMS;

/** What a name has as its addresses at one look-up. */
export interface Answer {
  readonly A?: readonly string[];
  readonly AAAA?: readonly string[];
  readonly CNAME?: string;
}

const public4: Answer = { A: [UPSTREAM] };
/** The answers of a name, one after the other and over again, each with a TTL of 0. */
export const FLIPS: Readonly<Record<string, readonly Answer[]>> = {
  [`rotates.${DOMAIN}`]: [public4, { A: [OTHER_UPSTREAM] }, { A: [OTHER_UPSTREAM, UPSTREAM] }],
  [`private.${DOMAIN}`]: [public4, { A: ['10.1.2.3'] }],
  [`metadata.${DOMAIN}`]: [public4, { A: ['169.254.169.254'] }],
  [`loopback.${DOMAIN}`]: [{ A: ['127.0.0.1'] }, public4],
  [`unspecified.${DOMAIN}`]: [public4, { A: ['0.0.0.0'] }],
  [`own.${DOMAIN}`]: [{ A: [OWN_ADDRESS] }, public4],
  [`mixed.${DOMAIN}`]: [public4, { A: [UPSTREAM, '192.168.0.9'] }, { A: ['10.1.2.3', UPSTREAM] }],
  [`mapped.${DOMAIN}`]: [public4, { AAAA: ['::ffff:10.1.2.3'] }],
  [`translated.${DOMAIN}`]: [{ AAAA: ['64:ff9b::a01:203'] }, public4],
  [`loopback6.${DOMAIN}`]: [public4, { AAAA: ['::1'] }],
  [`local6.${DOMAIN}`]: [public4, { A: [UPSTREAM], AAAA: ['fd00::1'] }],
  [`alias.${DOMAIN}`]: [public4, { CNAME: 'db.corp.example', A: ['172.16.0.4'] }],
};

/** Whether every address of an answer may be reached. */
export const isPublic = ({ A = [], AAAA = [] }: Answer): boolean => [...A, ...AAAA].every((address) => UPSTREAMS.includes(address));

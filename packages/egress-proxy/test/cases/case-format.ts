/** How the bytes of a case are sent. */
export interface Delivery {
  readonly chunk?: number;
  readonly splitAt?: readonly number[];
  readonly gapMs?: number;
  readonly holdOpen?: boolean;
  readonly closeAfter?: boolean;
  readonly thenAfterResponse?: string;
}

/** A unit of text, repeated. */
export interface Repeated {
  readonly unit: string;
  readonly count: number;
}

/** One row of a file of egress cases; `tests/cases/README.md` says what each field means. */
export interface EgressCase {
  readonly id: string;
  readonly group: string;
  readonly kind: string;
  readonly input: string;
  readonly inputGen?: Repeated;
  readonly appendGen?: Repeated;
  readonly expect: string;
  readonly acceptable?: readonly string[];
  readonly requires?: string | readonly string[];
  readonly allowList: readonly string[];
  readonly allowListGen?: { readonly prefix: string; readonly count: number; readonly suffix: string };
  readonly resolves?: readonly (readonly string[])[];
  readonly cname?: unknown;
  readonly dns?: { readonly delayMs?: number; readonly rcode?: string };
  readonly upstream?: {
    readonly refuses?: boolean;
    readonly blackhole?: boolean | readonly string[];
    readonly connectDelayMs?: number;
    readonly unreachable?: readonly string[];
  };
  readonly connect?: string;
  readonly firstBytesHex?: string;
  readonly delivery?: Delivery;
  readonly repeat?: number;
  readonly target?: string;
  readonly checks?: readonly string[];
}

/** How a case ended; one that cannot be run here was not run, which is never a pass. */
export type CaseEnd = { readonly run: true; readonly ended: string } | { readonly run: false; readonly why: string };

/** The entries of a case, the generated ones too. */
export function allowListOf({ allowList, allowListGen: gen }: EgressCase): readonly string[] {
  if (gen === undefined) return allowList;
  return [...allowList, ...Array.from({ length: gen.count }, (_, index) => `${gen.prefix}${index}${gen.suffix}`)];
}

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  PUBLIC_V4_A: '93.184.216.34',
  PUBLIC_V4_B: '93.184.216.35',
  PUBLIC_V6_A: '2606:2800:220:1:248:1893:25c8:1946',
  HOST_LAN_ADDRESS: '93.184.216.99',
};

/** The addresses that count as the host's own when a case runs. */
export const OWN_ADDRESSES = ['127.0.0.1', '::1', '93.184.216.99'];

/** The address that a word of a case stands for. */
export function addressFor(text: string): string {
  return PLACEHOLDERS[text] ?? text.replace(/^PUBLIC_V4_DEAD_(\d+)$/, '93.184.217.$1');
}

const FEATURES = new Set(['sni-check', 'caps', 'reload', 'summary']);
const KINDS = new Set(['hostname', 'connect-bytes', 'resolved-address', 'sni', 'client']);
const FIELDS = new Set(
  'id group why source kind input inputGen appendGen expect acceptable level requires note allowList allowListGen resolves cname dns upstream connect firstBytesHex delivery repeat target upstreamHost checks'.split(
    ' ',
  ),
);
const CHECKS =
  /^(?:never-dials:|dns-queries(?:=|<=)\d+$|audit-has-no:|upstream-gets:|upstream-gets-bytes:\d+$|upstream-has-no:|proxy-rss-growth-mib<\d+$)/;

/** Why the proxy cannot run a case, or undefined: what it asks for and nothing here knows must not count as a pass. */
export function cannotRun(entry: EgressCase): string | undefined {
  if (!KINDS.has(entry.kind)) return `there is no kind ${entry.kind}`;
  if (entry.target !== undefined) return `the proxy is no ${entry.target}`;
  const needs = [entry.requires ?? []].flat().filter((feature) => !FEATURES.has(feature));
  if (needs.length > 0) return `it needs ${needs.join(', ')}`;
  const fields = Object.keys(entry).filter((field) => !FIELDS.has(field));
  if (fields.length > 0) return `there is no field ${fields.join(', ')}`;
  const checks = (entry.checks ?? []).filter((check) => !CHECKS.test(check));
  return checks.length > 0 ? `there is no check ${checks.join(', ')}` : undefined;
}

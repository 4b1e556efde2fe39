import { type CallKind, ENDPOINTS, type Endpoint } from './endpoints.ts';
import type { ModelFeature, ModelFormat } from './formats.ts';
import { readTarget, type Target, writeTarget } from './read-target.ts';
import type { HeadRefusal } from './reasons.ts';
import { type HeaderPair, headerPairs, headersUp } from './request-headers.ts';

/** Headers of one request. */
export const HEADERS_MAX = 100;

/** A request as it came, before its body. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
}

/** Whether a head passes, and what of it goes up. */
export type HeadDecision =
  | {
      readonly verdict: 'allowed';
      readonly reason: 'listed';
      readonly kind: CallKind;
      readonly method: string;
      /** Path and query as they go up; the upstream's own path comes before it. */
      readonly target: string;
      readonly path: string;
      /** Feature that the path is. */
      readonly feature: ModelFeature | undefined;
      /** Model that the path names. */
      readonly model: string | undefined;
      /** Whether the path alone makes the answer a stream of events. */
      readonly streams: boolean;
      readonly hasBody: boolean;
      /** Bytes that the head announces; undefined where the body comes in chunks. */
      readonly bodyBytes: number | undefined;
      readonly headers: readonly HeaderPair[];
    }
  | {
      readonly verdict: 'refused';
      readonly reason: HeadRefusal | 'feature_refused';
      readonly message: string;
      /** With `feature_refused`: what policy would have to name. */
      readonly feature?: ModelFeature;
    };

/** What the operator says of heads. */
export interface HeadRules {
  readonly format: ModelFormat;
  /** Bytes of a body. */
  readonly bodyMaxBytes: number;
  /** Bytes of an upload, which is passed on as it comes. */
  readonly uploadMaxBytes: number;
  /** Features that may be used. */
  readonly features: readonly ModelFeature[];
  /** Header in which the operator wants the credential shown, where it is not that of the format. */
  readonly credentialHeader?: string | undefined;
}

const METHOD = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE)$/;

/** Judges method, target and headers. The guest's Host is not read, its credentials and all that is not listed do not go up. */
export function decideHead(head: RequestHead, rules: HeadRules): HeadDecision {
  const { method } = head;
  if (!METHOD.test(method)) return refused('method_not_allowed', 'the model route knows no such method');
  const target = readTarget(head.target);
  if (target === undefined) return refused('bad_target', 'the target must be a plain path: nothing encoded, no dots, no host');
  if (head.rawHeaders.length > 2 * HEADERS_MAX) return refused('too_many_headers', `more than ${HEADERS_MAX} headers`);
  const pairs = headerPairs(head.rawHeaders);
  const fault = framingFault(pairs);
  if (fault !== undefined) return fault;
  const listed = ENDPOINTS[rules.format].filter(({ path }) => path.test(target.path));
  if (listed.length === 0) return refused('path_not_listed', `the model route of the format ${rules.format} has no such path`);
  const endpoint = listed.find((item) => item.method === 'any' || item.method === method);
  if (endpoint === undefined) return refused('method_not_allowed', `this path takes ${listed.map((item) => item.method).join(', ')}`);
  const { feature } = endpoint;
  if (feature !== undefined && !rules.features.includes(feature))
    return { ...refused('feature_refused', `policy does not allow ${feature} (the path)`), feature };
  return bodyFault(pairs, rules, endpoint) ?? allow(head, rules, target, endpoint, pairs);
}

function allow(
  head: RequestHead,
  { format, credentialHeader }: HeadRules,
  target: Target,
  endpoint: Endpoint,
  pairs: readonly HeaderPair[],
): HeadDecision {
  const isRaw = endpoint.kind === 'raw';
  const unknown = target.query.find(([name]) => !isRaw && !endpoint.query.includes(name) && !endpoint.dropped.includes(name));
  if (unknown !== undefined) return refused('query_not_listed', 'this path takes no such parameter');
  const twice = target.query.some(([name], index) => !isRaw && target.query.findIndex(([other]) => other === name) !== index);
  if (twice) return refused('query_not_listed', 'a parameter is there twice');
  const hasBody = pairs.some(([name, value]) => name === 'transfer-encoding' || (name === 'content-length' && value !== '0'));
  const takesNone = endpoint.kind === 'list' || endpoint.kind === 'manage';
  if (takesNone && hasBody) return refused('bad_request', `a ${endpoint.method} of this path has no body`);
  const length = pairs.find(([name]) => name === 'content-length')?.[1];
  return {
    verdict: 'allowed',
    reason: 'listed',
    kind: endpoint.kind,
    method: head.method,
    target: writeTarget(target, endpoint.dropped),
    path: target.path,
    feature: endpoint.feature,
    model: endpoint.path.exec(target.path)?.groups?.model,
    streams: endpoint.streams ?? false,
    hasBody,
    bodyBytes: length === undefined ? undefined : Number(length),
    headers: [
      ...headersUp(format, pairs, credentialHeader),
      // The form of an upload goes up as it is, and so does the word that says where its parts end.
      ...(endpoint.kind === 'upload' ? pairs.filter(([name]) => name === 'content-type') : []),
    ],
  };
}

/** Two readers of one connection must agree where a request ends, and on what its body is. */
function framingFault(pairs: readonly HeaderPair[]): HeadDecision | undefined {
  const of = (name: string) => valuesOf(pairs, name);
  const [lengths, codings] = [of('content-length'), of('transfer-encoding')];
  if (lengths.length > 0 && codings.length > 0) return refused('two_framings', 'Content-Length and Transfer-Encoding stand together');
  if (lengths.length > 1 || codings.length > 1) return refused('two_framings', 'the length of the body is said twice');
  if (codings.some((value) => value.toLowerCase() !== 'chunked')) return refused('two_framings', 'the only transfer coding is chunked');
  if (lengths.some((value) => !/^\d{1,15}$/.test(value))) return refused('two_framings', 'Content-Length is no number');
  if (of('upgrade').length > 0 || of('connection').some((value) => /(?:^|[\s,])upgrade(?:$|[\s,])/i.test(value)))
    return refused('upgrade_refused', 'the model route changes to no other protocol');
  if (of('content-encoding').some((value) => value.toLowerCase() !== 'identity'))
    return refused('encoding_refused', 'send the body as it is, without a Content-Encoding');
  if (of('trailer').length > 0) return refused('bad_header', 'the model route takes no trailers');
  return of('content-type').length > 1 ? refused('repeated_header', 'Content-Type is there twice') : undefined;
}

const FORM =
  /^multipart\/form-data\s*;\s*boundary=(?:[A-Za-z0-9'()+_,./:=?-]{1,70}|"[A-Za-z0-9'()+_,./:=? -]{0,69}[A-Za-z0-9'()+_,./:=?-]")$/i;

/** What a body is announced as must be what the path takes. */
function bodyFault(pairs: readonly HeaderPair[], rules: HeadRules, { kind }: Endpoint): HeadDecision | undefined {
  const isUpload = kind === 'upload';
  const max = isUpload ? rules.uploadMaxBytes : rules.bodyMaxBytes;
  if (Number(valuesOf(pairs, 'content-length')[0] ?? 0) > max) return refused('body_too_large', `a body has at most ${max} bytes here`);
  const type = valuesOf(pairs, 'content-type')[0];
  if (isUpload)
    return FORM.test(type ?? '') ? undefined : refused('content_type_refused', 'the body must be multipart/form-data with a boundary');
  if (kind === 'raw' || type === undefined) return undefined;
  const isJson = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(type);
  // curl says this of `-d` when nobody says otherwise; what goes up says JSON, and the body is read as JSON.
  const isForm = /^application\/x-www-form-urlencoded$/i.test(type);
  return isJson || isForm ? undefined : refused('content_type_refused', 'the body must be application/json');
}

function valuesOf(pairs: readonly HeaderPair[], name: string): string[] {
  return pairs.filter(([other]) => other === name).map(([, value]) => value);
}

function refused(reason: HeadRefusal | 'feature_refused', message: string): Extract<HeadDecision, { verdict: 'refused' }> {
  return { verdict: 'refused', reason, message };
}

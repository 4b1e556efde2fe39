import { RouteConfigError } from './config-error.ts';

/** Where requests go, taken apart once: nothing of a request is ever joined to a URL. */
export interface Upstream {
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  /** Value of Host. */
  readonly authority: string;
  /** Path before every path of a request, without a final slash; empty for none. */
  readonly basePath: string;
}

/**
 * Reads the address of an upstream: https anywhere, plain http on the node's own loopback alone, since nothing else keeps the credential to
 * itself. Throws `route_invalid`.
 */
export function readUpstream(text: string): Upstream {
  const fault = (why: string) => new RouteConfigError('route_invalid', `the upstream of a model route ${why}`);
  if (!URL.canParse(text)) throw fault('must be a URL');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') throw fault('has no user, query or fragment');
  const isTls = url.protocol === 'https:';
  if (!isTls && !(url.protocol === 'http:' && isLoopback(url.hostname))) throw fault('must be https, or http on 127.0.0.1 or [::1]');
  const basePath = url.pathname.replace(/\/$/, '');
  if (!/^(?:\/[A-Za-z0-9._~-]+)*$/.test(basePath)) throw fault('has a path of plain names');
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  return { isTls, host: url.hostname.replace(/^\[|\]$/g, ''), port, authority: url.host, basePath };
}

function isLoopback(host: string): boolean {
  return host === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}

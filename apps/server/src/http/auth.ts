import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import { CodedError } from '@firecrew/base';
import { type Database, tables } from '@firecrew/store';
import { and, eq, isNull } from 'drizzle-orm';
import type { FastifyRequest } from 'fastify';
import type { ServerContext } from '../context.ts';
import type { ConnectedNode } from '../nodes/node-registry.ts';
import { accessOf, mayUse, type RouteAccess } from './route-access.ts';

/** Who calls: what a bearer token stands for. */
export interface Caller {
  readonly tokenId: string;
  readonly name: string;
  readonly workspaceId: string;
  readonly role: 'operator' | 'member' | 'seat';
  /** The seat whose key this is; there where the role is `seat`. */
  readonly seat?: { readonly id: string; readonly role: string };
}

/** SHA-256 of a token, hexadecimal: the only form that is stored. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

const TOKEN_HEAD = { caller: 'fct', node: 'fcn', seat: 'fcs' } as const;

/** A new bearer token: 32 random bytes, of a caller, of a node's link or of a seat. */
export function newToken(of: keyof typeof TOKEN_HEAD = 'caller'): string {
  return `${TOKEN_HEAD[of]}_${randomBytes(32).toString('base64url')}`;
}

/** Finds the caller of a bearer token, or throws `unauthorized`; `forbidden` where the route is not for such a caller ({@link ROUTE_ACCESS}). */
export async function findCaller(db: Database, request: FastifyRequest): Promise<Caller> {
  const token = bearerOf(request);
  const { apiTokens, seats } = tables;
  const [found] = await db
    .select({ token: apiTokens, seat: seats })
    .from(apiTokens)
    .leftJoin(seats, eq(seats.id, apiTokens.seatId))
    .where(and(eq(apiTokens.hash, hashToken(token)), isNull(apiTokens.revokedAt)));
  if (found === undefined || (found.token.role === 'seat' && found.seat?.linked !== true))
    throw new CodedError('unauthorized', 'the token is not known or was revoked', { action: 'Use the token of this home folder.' });
  const { id: tokenId, name, workspaceId, role } = found.token;
  const access = accessOf(request.method, request.routeOptions.url);
  if (!mayUse(role, access)) throw new CodedError('forbidden', refusalOf(role, access));
  return { tokenId, name, workspaceId, role, ...(found.seat === null ? {} : { seat: { id: found.seat.id, role: found.seat.role } }) };
}

/** Whether the token of a caller that was found before is accepted now: of a call that goes on, before each part of its answer. */
export async function isStillAccepted(db: Database, { tokenId, role }: Caller): Promise<boolean> {
  const { apiTokens, seats } = tables;
  const [found] = await db
    .select({ linked: seats.linked })
    .from(apiTokens)
    .leftJoin(seats, eq(seats.id, apiTokens.seatId))
    .where(and(eq(apiTokens.id, tokenId), isNull(apiTokens.revokedAt)));
  return found !== undefined && (role !== 'seat' || found.linked === true);
}

function refusalOf(role: Caller['role'], access: RouteAccess | undefined): string {
  return role === 'seat'
    ? "a seat's key may create and read missions of its seat, and nothing else"
    : `only an operator may do this, and the token is that of a ${role}${access === undefined ? '; the route is for nobody' : ''}`;
}

/**
 * Finds the node of a bearer token that was given to its link: good while that link is up and the node is not revoked. Throws
 * `unauthorized`.
 */
export async function findNode({ db, nodes }: Pick<ServerContext, 'db' | 'nodes'>, request: FastifyRequest): Promise<ConnectedNode> {
  const node = nodes.withImagesToken(hashToken(bearerOf(request)));
  if (node !== undefined) {
    const rows = await db
      .select({ id: tables.nodes.id })
      .from(tables.nodes)
      .where(and(eq(tables.nodes.id, node.id), isNull(tables.nodes.revokedAt)));
    if (rows.length > 0) return node;
  }
  throw new CodedError('unauthorized', 'the token is not that of a node whose link is up', {
    action: 'Nothing: a node gets a new one with each link.',
  });
}

/** The bearer token of a request, or throws `unauthorized`. */
export function bearerOf(request: FastifyRequest): string {
  const header = request.headers.authorization ?? '';
  const match = /^Bearer ([A-Za-z0-9._~+/=-]{1,4096})$/i.exec(header);
  if (match?.[1] === undefined) throw new CodedError('unauthorized', 'the request carries no bearer token');
  return match[1];
}

/**
 * Refuses requests that a web page or a rebound name could make against a loopback server: the `Host` must be an address
 * or a name the operator listens on, and a browser's `Origin` must be this server itself.
 */
export function checkHostAndOrigin(request: FastifyRequest, names: readonly string[]): void {
  const host = hostOf(request.headers.host ?? '');
  if (host === undefined || !(isIP(host) !== 0 || names.includes(host.toLowerCase()))) {
    throw new CodedError('host_refused', `the Host header ${JSON.stringify(request.headers.host ?? '')} is not this server`);
  }
  const origin = request.headers.origin;
  if (origin === undefined) return;
  const same = URL.canParse(origin) && new URL(origin).host === request.headers.host;
  if (!same) throw new CodedError('origin_refused', `requests of the origin ${JSON.stringify(origin.slice(0, 200))} are not accepted`);
}

function hostOf(header: string): string | undefined {
  if (!URL.canParse(`http://${header}`)) return undefined;
  return new URL(`http://${header}`).hostname.replace(/^\[|\]$/g, '');
}

/** What a node may do with the data calls of one attempt. */
export interface AttemptGrant {
  readonly nodeId: string;
  readonly turnId: string;
  readonly attempt: number;
  readonly epoch: number;
  readonly workspaceId: string;
  /** Blobs that may be read. */
  readonly digests: readonly string[];
}

/** Signs and reads the tokens of attempts; the key is the server's own and survives restarts. */
export class AttemptTokens {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  sign(grant: AttemptGrant): string {
    const body = Buffer.from(JSON.stringify(grant)).toString('base64url');
    return `fca.${body}.${this.#mac(body)}`;
  }

  /** Reads a token, or throws `unauthorized`. */
  read(token: string): AttemptGrant {
    const [head, body, mac] = token.split('.');
    if (head === 'fca' && body !== undefined && mac !== undefined) {
      const expected = Buffer.from(this.#mac(body));
      const given = Buffer.from(mac);
      // Our own signature covers the body, so its shape is the one that `sign` wrote.
      if (expected.length === given.length && timingSafeEqual(expected, given))
        return JSON.parse(Buffer.from(body, 'base64url').toString()) as AttemptGrant;
    }
    throw new CodedError('unauthorized', 'the token of the attempt is not valid');
  }

  #mac(body: string): string {
    return createHmac('sha256', this.#key).update(body).digest('base64url');
  }
}

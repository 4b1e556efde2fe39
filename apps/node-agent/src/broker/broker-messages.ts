import { createHash } from 'node:crypto';
import { isHandle } from '@firecrew/credential-broker';
import { CHAIN_MODES } from '@firecrew/egress-policy';
import { MODEL_FEATURES, MODEL_FORMATS } from '@firecrew/model-route';
import * as z from 'zod';

/** Where the broker gets the credential of a route. A variable is of the node agent alone, which sends what it holds. */
const sourceSchema = z.union([
  z.strictObject({ file: z.string().startsWith('/') }),
  z.strictObject({
    value: z.string(),
    isRenewable: z
      .boolean()
      .describe('Whether it comes from a login that has not been run again for it, so that its refusal is worth telling.'),
  }),
  z.strictObject({ missing: z.literal(true) }),
]);

const routeSchema = z.strictObject({
  format: z.enum(MODEL_FORMATS),
  upstream: z.string(),
  ca: z.string().nullable(),
  header: z.strictObject({ name: z.string(), prefix: z.string() }).nullable(),
  features: z.array(z.enum(MODEL_FEATURES)),
  credential: sourceSchema.nullable().describe('Null for an upstream that asks for none.'),
  viaProxy: z.boolean(),
});
export type RouteOrder = z.infer<typeof routeSchema>;

/** The operator's own proxy. It comes with the routes, so that no call leaves before it is known. */
const proxySchema = z.strictObject({
  url: z.string(),
  mode: z.enum(CHAIN_MODES),
  noProxy: z.array(z.string()),
  credential: z
    .union([
      z.strictObject({ file: z.string().startsWith('/') }),
      z.strictObject({ value: z.string() }),
      z.strictObject({ missing: z.literal(true) }),
    ])
    .nullable()
    .describe('Null for a proxy that asks for none.'),
});
export type ProxyOrder = z.infer<typeof proxySchema>;

const handleSchema = z.strictObject({
  handle: z.string().refine(isHandle, 'is no handle'),
  route: z.string(),
  validUntilMs: z.number().describe('Boot time in `ms`.'),
});

/** What a node agent tells its broker, one JSON value in a line: each message is the whole of its kind, so that a new broker needs no history. */
export const brokerOrderSchema = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('routes'), proxy: proxySchema.nullable(), routes: z.record(z.string(), routeSchema) }),
  z.strictObject({ t: z.literal('handles'), handles: z.array(handleSchema) }),
]);
export type BrokerOrder = z.infer<typeof brokerOrderSchema>;

/** What a broker tells its node agent on its output, one JSON value in a line: never a credential. */
export const brokerReportSchema = z.discriminatedUnion('t', [
  z.strictObject({
    t: z.literal('credential_refused'),
    route: z.string().max(128),
    digest: z.string().regex(/^[0-9a-f]{64}$/),
  }),
]);
export type BrokerReport = z.infer<typeof brokerReportSchema>;

/** Characters of one report. */
export const REPORT_MAX_CHARS = 4_096;

/** What stands for a credential in a report: its SHA-256, hexadecimal. */
export function credentialDigest(credential: string): string {
  return createHash('sha256').update(credential).digest('hex');
}

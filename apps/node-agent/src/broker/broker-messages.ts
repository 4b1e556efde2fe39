import { isHandle } from '@firecrew/credential-broker';
import { MODEL_FEATURES, MODEL_FORMATS } from '@firecrew/model-route';
import * as z from 'zod';

/** Where the broker gets the credential of a route. A variable is of the node agent alone, which sends what it holds. */
const sourceSchema = z.union([
  z.strictObject({ file: z.string().startsWith('/') }),
  z.strictObject({ value: z.string() }),
  z.strictObject({ missing: z.literal(true) }),
]);

const routeSchema = z.strictObject({
  format: z.enum(MODEL_FORMATS),
  upstream: z.string(),
  ca: z.string().nullable(),
  header: z.strictObject({ name: z.string(), prefix: z.string() }).nullable(),
  features: z.array(z.enum(MODEL_FEATURES)),
  credential: sourceSchema.nullable().describe('Null for an upstream that asks for none.'),
});
export type RouteOrder = z.infer<typeof routeSchema>;

const handleSchema = z.strictObject({
  handle: z.string().refine(isHandle, 'is no handle'),
  route: z.string(),
  validUntilMs: z.number().describe('Boot time in `ms`.'),
});

/** What a node agent tells its broker, one JSON value in a line: each message is the whole of its kind, so that a new broker needs no history. */
export const brokerOrderSchema = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('routes'), routes: z.record(z.string(), routeSchema) }),
  z.strictObject({ t: z.literal('handles'), handles: z.array(handleSchema) }),
]);
export type BrokerOrder = z.infer<typeof brokerOrderSchema>;

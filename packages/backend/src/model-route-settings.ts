import { MODEL_FEATURES, MODEL_FORMATS, readUpstream } from '@firecrew/model-route';
import * as z from 'zod';
import { backendNameSchema } from './backend-schema.ts';

/** Most tokens of an answer where a request sets no limit and the route has a budget. */
export const DEFAULT_OUTPUT_TOKENS = 32_000;

/** Longest time until the command of a login is run again, in seconds, where the settings say none. */
export const DEFAULT_LOGIN_SECONDS = 300;

const upstreamSchema = z
  .string()
  .min(1)
  .max(2_000)
  .superRefine((text, context) => {
    try {
      readUpstream(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : 'is not an upstream' });
    }
  })
  .describe('URL of the one upstream: https, or http on the own loopback of the node. Its path comes before that of every request.');

const places = [
  z.strictObject({ file: z.string().startsWith('/').max(4096) }),
  z.strictObject({ variable: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a variable name') }),
] as const;
/** Where an operator keeps a credential: a file, or a variable of the service that uses it. */
export const credentialPlaceSchema = z.union(places);
const credentialSourceSchema = z
  .union([
    ...places,
    z.strictObject({
      command: z.array(z.string().min(1).max(4096)).min(1).max(64).describe('Program and arguments, run without a shell.'),
      everySeconds: z.int().min(10).max(86_400).default(DEFAULT_LOGIN_SECONDS).describe('Longest time until it is run again.'),
    }),
  ])
  .nullable()
  .describe(
    'File, or variable of the node agent, that holds the credential, or command that prints it; null for an upstream that asks for none.',
  );
/** Where the credential of a route is read from. */
export type CredentialSource = z.infer<typeof credentialSourceSchema>;

const headerSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,63}$/, 'must be a header name in lower case')
    .refine(
      (name) => !/^(?:host|connection|content-.*|transfer-encoding|upgrade|te|trailer|expect)$/.test(name),
      'is a header of the connection',
    ),
  prefix: z.string().regex(/^[ -~]{0,32}$/),
});

/** A model route, as the operator of a node says it. Unknown keys are refused. */
export const modelRouteSettingsSchema = z
  .strictObject({
    format: z.enum(MODEL_FORMATS).describe('Wire format of the requests; `pass_through` looks into no body.'),
    upstream: upstreamSchema,
    caFile: z.string().startsWith('/').optional().describe('PEM file of the only certificates that are trusted for the upstream.'),
    viaProxy: z
      .boolean()
      .default(true)
      .describe('Whether calls go through `egressProxy`, where there is one and the upstream is neither this host nor in its `noProxy`.'),
    credential: credentialSourceSchema,
    header: headerSchema.optional().describe('Header of the credential; absent: as the format has it.'),
    features: z
      .array(z.enum(MODEL_FEATURES))
      .max(MODEL_FEATURES.length)
      .default([])
      .describe('What requests may ask for beyond an answer.'),
    models: z
      .array(z.string().min(1).max(128))
      .min(1)
      .max(1_000)
      .optional()
      .describe('Exact names of the models that may be asked; absent: every one.'),
    passThrough: z.boolean().default(false).describe("The operator's word that `pass_through` is meant."),
    outputTokens: z.int().min(1).max(10_000_000).default(DEFAULT_OUTPUT_TOKENS).describe('Limit of an answer where a request sets none.'),
    budget: z
      .strictObject({
        tokens: z.int().min(1).optional().describe('Tokens of one attempt.'),
        money: z.number().positive().max(1_000_000_000).optional().describe('Money of one attempt, in the unit of the price table.'),
      })
      .optional(),
    priceFile: z.string().startsWith('/').optional().describe('Price table, JSON.'),
  })
  .superRefine((route, context) => {
    const fault = routeFault(route);
    if (fault !== undefined) context.addIssue({ code: 'custom', path: [fault[0]], message: fault[1] });
  });
export type ModelRouteSettings = z.infer<typeof modelRouteSettingsSchema>;

function routeFault(route: {
  readonly format: string;
  readonly passThrough: boolean;
  readonly features: readonly string[];
  readonly models?: readonly string[] | undefined;
  readonly budget?: { readonly money?: number | undefined } | undefined;
  readonly priceFile?: string | undefined;
}): readonly [field: string, message: string] | undefined {
  const isRaw = route.format === 'pass_through';
  if (isRaw !== route.passThrough) return ['passThrough', 'must be true for the format pass_through, and for no other'];
  if (isRaw && route.features.length > 0) return ['features', 'cannot be told apart where no body is looked into'];
  if (isRaw && route.models !== undefined) return ['models', 'cannot be told apart where no body is looked into'];
  if (isRaw && route.budget !== undefined) return ['budget', 'cannot be kept where no answer is looked into'];
  if (route.budget?.money !== undefined && route.priceFile === undefined) return ['priceFile', 'is needed for a budget in money'];
  return undefined;
}

/** Model routes of a node by the exact name of a backend. Which backends there are, a node hears from its server. */
export const modelRoutesSchema = z.record(backendNameSchema, modelRouteSettingsSchema);
export type ModelRoutes = z.infer<typeof modelRoutesSchema>;

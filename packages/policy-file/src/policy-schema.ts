import { HOST_BUDGETS_MAX, POLICY_PARTS, POLICY_PRESETS } from '@firecrew/egress-policy';
import * as z from 'zod';

/** Entries of one list. */
export const MAX_LIST_ENTRIES = 256;

const nameSchema = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and hyphens');

const entrySchema = z
  .union(
    [
      z.string().min(1).max(300),
      z.strictObject({
        host: z.string().min(1).max(300).describe('A name; a leading dot covers the domain and its subdomains.'),
        port: z.int().min(1).max(65_535).optional().describe('443 where it is left out.'),
        protocol: z
          .enum(['tls', 'tcp'])
          .optional()
          .describe('`tls` demands the server name of the host; `tcp` passes any bytes, and needs a port.'),
      }),
    ],
    'must be HOST[:PORT[/PROTOCOL]], rule:NAME, registry:KIND, or an object of host, port and protocol',
  )
  .describe('`HOST[:PORT[/PROTOCOL]]`, `rule:NAME`, `registry:KIND`, or the first as an object.');
const listSchema = z.array(entrySchema).max(MAX_LIST_ENTRIES);

const partsSchema = z.strictObject({
  setup: listSchema.optional().describe('For the set-up before the agent and before each check.'),
  run: listSchema.optional().describe('For the agent and its check.'),
});

const budget = {
  bytes: z.int().min(1).optional().describe('`bytes` of tunnels, both directions together.'),
  connections: z.int().min(1).optional().describe('Tunnels opened, ended ones too.'),
};
const budgetsSchema = z.strictObject({
  turn: z.strictObject(budget).optional().describe('All hosts together.'),
  eachHost: z.strictObject(budget).optional().describe('Each name that no entry of `hosts` covers.'),
  hosts: z
    .array(
      z.strictObject({
        host: z
          .string()
          .min(1)
          .max(300)
          .describe('A name as in an entry, without a port; with a leading dot the domain is counted as a whole.'),
        ...budget,
      }),
    )
    .max(HOST_BUDGETS_MAX)
    .optional(),
});

/** `firecrew.policy.yaml`: what missions of a server may reach. Unknown keys are refused. */
export const policyFileSchema = z
  .strictObject({
    version: z.literal(1),
    preset: z
      .enum(POLICY_PRESETS)
      .default('named')
      .describe('How far a mission may reach beyond what is named here: `locked`, `named`, `install` (set-up only) or `open`.'),
    ceiling: partsSchema.optional().describe('What no mission, backend and preset may pass; an absent part has the bound of the preset.'),
    learn: partsSchema
      .optional()
      .describe(
        'What a learning run may reach without asking, below `ceiling`; an absent part has what the preset and `ceiling` leave open, and may not learn where they bound nothing.',
      ),
    addressRules: z
      .array(
        z.strictObject({
          host: z.string().min(1).max(300).describe('A name as in an entry, without a port.'),
          addresses: z.array(z.string().min(1).max(64)).min(1).max(64).describe('Addresses or CIDR ranges.'),
        }),
      )
      .max(64)
      .optional()
      .describe('Hosts whose addresses need not be public.'),
    budgets: budgetsSchema.optional().describe('How much one attempt of a turn may send and fetch; what is left out has no bound.'),
    rules: z
      .record(
        nameSchema,
        z.strictObject({
          parts: z.array(z.enum(POLICY_PARTS)).min(1).max(2).optional().describe('The parts it is for; both where it is left out.'),
          allow: listSchema,
        }),
      )
      .optional()
      .describe('Lists that a mission or a list of this file asks for as `rule:NAME`.'),
    backends: z.record(nameSchema, partsSchema).optional().describe('What missions of a backend get without asking.'),
    missions: partsSchema.optional().describe('What every mission gets without asking.'),
  })
  .describe('Egress policy of a Firecrew server. Effective: ceiling ∩ (backend ∪ mission), for each part of a phase.');

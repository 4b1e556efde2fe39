import { parseAllowEntry } from '@firecrew/egress-policy';
import { MODEL_FORMATS } from '@firecrew/model-route';
import { driverSchema, imageReferenceSchema } from '@firecrew/protocol';
import * as z from 'zod';

/** Most hosts of one manifest. */
export const MAX_BACKEND_HOSTS = 256;
/** Most variables of one credential contract. */
export const MAX_CONTRACT_VARIABLES = 32;
/** Most scaffolding paths of one manifest. */
export const MAX_SCAFFOLDING = 64;

const hostSchema = z
  .string()
  .min(1)
  .max(300)
  .superRefine((entry, context) => {
    const parsed = parseAllowEntry(entry);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.problem.message });
  })
  .describe('Egress entry `HOST[:PORT[/PROTOCOL]]`; a leading dot covers subdomains.');

const variableSchema = z.strictObject({
  name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a variable name'),
  required: z.boolean().describe('Whether a mission that does not set it is refused.'),
  purpose: z.string().min(1).max(200).describe('What it gives access to, for people.'),
});

const relativePathSchema = z
  .string()
  .min(1)
  .max(300)
  .refine(
    (path) => !path.startsWith('/') && !path.split('/').some((part) => part === '' || part === '.' || part === '..'),
    'must be a path below the root of the tree',
  )
  .refine((path) => !/[\u0000-\u001f\\]/.test(path), 'must not hold control characters or backslashes');

const modelRouteSchema = z.strictObject({
  format: z.enum(MODEL_FORMATS).describe('Wire format of its model calls; where they go, and with which credential, is said by each node.'),
});

/** What an agent CLI is driven by. */
export const harnessSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command').describe('Any command, run by `/bin/sh -c`, one process for each round.') }),
]);

/** Name of a backend. */
export const backendNameSchema = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and hyphens');

const manifestShape = z.strictObject({
  name: backendNameSchema,
  label: z.string().min(1).max(100).describe('What people are shown; says who pays.'),
  image: imageReferenceSchema
    .nullable()
    .describe('Name or id of an image of the image store; null runs in the default image of a node, or with the tools of a host.'),
  drivers: z.array(driverSchema).min(1).max(3).describe('Drivers the backend can run under.'),
  harness: harnessSchema,
  hosts: z.array(hostSchema).max(MAX_BACKEND_HOSTS).describe('Egress entries the agent needs for itself.'),
  modelRoute: modelRouteSchema.nullable().describe('The model route without which a turn cannot work; null where it needs none.'),
  credentialContract: z
    .strictObject({ variables: z.array(variableSchema).max(MAX_CONTRACT_VARIABLES) })
    .nullable()
    .describe('Secrets that must enter the guest; an empty list says that none is needed, null that nobody has said.'),
  scaffolding: z.array(relativePathSchema).max(MAX_SCAFFOLDING).describe('Paths the CLI leaves in a tree that are no work of the agent.'),
  demand: z
    .strictObject({
      memoryMib: z.int().min(1).max(4_194_304).optional().describe('Memory in `MiB`.'),
      diskMib: z.int().min(1).max(67_108_864).optional().describe('Disk in `MiB`.'),
      vcpus: z.number().min(0.1).max(1024).optional().describe('vCPUs.'),
    })
    .describe('What a turn asks of a node; absent parts take the default of the driver.'),
});

/** The manifest of a backend: the one place that says everything about an agent kind. Unknown keys are refused. */
export const backendSchema = manifestShape.superRefine(({ image, drivers }, context) => {
  if (image !== null && drivers.includes('process'))
    context.addIssue({ code: 'custom', path: ['drivers'], message: 'the process driver has no images: leave it out, or the image' });
});

/** A valid manifest. */
export type Backend = z.infer<typeof backendSchema>;
/** The harness part of a manifest. */
export type HarnessChoice = z.infer<typeof harnessSchema>;

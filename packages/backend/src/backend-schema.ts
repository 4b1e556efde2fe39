import { parseAllowEntry } from '@firecrew/egress-policy';
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
  required: z.boolean().describe('Whether a turn without it is refused.'),
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
  upstream: z
    .url({ protocol: /^https$/ })
    .refine((text) => originOf(text) === text, 'must be an origin: scheme, host and port, nothing after them')
    .describe('The one origin that requests are sent to.'),
  api: z.enum(['anthropic_messages', 'openai_responses', 'openai_chat']).describe('Wire format of the requests.'),
  family: z.string().min(1).max(64).describe('Model family, compared with that of a judge.'),
});

/** What an agent CLI is driven by. */
export const harnessSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('command').describe('Any command, run by `/bin/sh -c`, one process for each round.') }),
]);

/** The manifest of a backend: the one place that says everything about an agent kind. Unknown keys are refused. */
export const backendSchema = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and hyphens'),
  label: z.string().min(1).max(100).describe('What people are shown; says who pays.'),
  image: z.string().min(1).max(300).nullable().describe('Image reference; null where the host or the caller provides the tools.'),
  drivers: z
    .array(z.enum(['process', 'qemu', 'firecracker']))
    .min(1)
    .max(3)
    .describe('Drivers the backend can run under.'),
  harness: harnessSchema,
  hosts: z.array(hostSchema).max(MAX_BACKEND_HOSTS).describe('Egress entries the agent needs for itself.'),
  modelRoute: modelRouteSchema.nullable().describe('Where the host sends model calls with its own credential; null for none.'),
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

/** A valid manifest. */
export type Backend = z.infer<typeof backendSchema>;
/** The harness part of a manifest. */
export type HarnessChoice = z.infer<typeof harnessSchema>;

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

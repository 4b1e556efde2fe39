import * as z from 'zod';
import { nodeCapabilitiesSchema, nodeHealthSchema, nodeVmsSchema } from './node-link.ts';
import { countSchema, driverSchema, nodeIdSchema } from './values.ts';

const mibSchema = countSchema.describe('`MiB`.');
/** Why a node takes no turn of the default size now, with the numbers of that reason. The reasons are a closed list. */
export const unfitCauseSchema = z.discriminatedUnion('reason', [
  z.object({ reason: z.enum(['draining', 'not_connected', 'not_capable']) }),
  z.object({
    reason: z.literal('no_recent_health'),
    ageMs: z.number().optional().describe('Age of the reading in `ms`; absent where there is none.'),
  }),
  z.object({ reason: z.literal('capacity_unknown'), error: z.string() }),
  z.object({ reason: z.literal('no_disk'), freeMib: mibSchema, promisedMib: mibSchema }),
  z.object({ reason: z.literal('at_capacity'), committedMib: mibSchema, usedMib: mibSchema, totalMib: mibSchema }),
  z.object({ reason: z.literal('never_fits'), memoryMib: mibSchema, diskMib: mibSchema, totalMib: mibSchema }),
]);
export type UnfitCause = z.infer<typeof unfitCauseSchema>;

export const nodeViewSchema = z.object({
  id: nodeIdSchema,
  name: z.string(),
  online: z.boolean(),
  draining: z.boolean(),
  healthAgeMs: z.number().nullable(),
  health: nodeHealthSchema.nullable(),
  capabilities: nodeCapabilitiesSchema.nullable(),
  vms: nodeVmsSchema.nullable().optional().describe('What is on it; null where it has not said.'),
  verdict: z.object({
    fit: z.boolean(),
    freeSlots: countSchema,
    committed: countSchema,
    line: z.string(),
    unfit: unfitCauseSchema.optional().describe('Absent where the node fits.'),
  }),
});
export const fleetViewSchema = z.object({ freeSlots: countSchema, nodes: z.array(nodeViewSchema) });
export type FleetView = z.infer<typeof fleetViewSchema>;

/** A backend as a server knows it, and whether missions of it can run now. */
export const backendViewSchema = z.object({
  name: z.string(),
  label: z.string(),
  image: z.string().nullable().describe("Null runs in a node's default image, or with the tools of its host."),
  drivers: z.array(driverSchema),
  hosts: z.array(z.string()).describe('Egress entries that its turns have by themselves, below the ceiling.'),
  modelRoute: z.object({ format: z.string() }).nullable().describe('The model route without which it cannot work.'),
  available: z.boolean(),
  detail: z.string().describe('Why it is not available; empty where it is.'),
  nodes: z.array(z.object({ id: nodeIdSchema, name: z.string(), drivers: z.array(z.string()) })).describe('Where it can run now.'),
});
export type BackendView = z.infer<typeof backendViewSchema>;
export const backendListSchema = z.object({ backends: z.array(backendViewSchema) });

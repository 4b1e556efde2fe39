import * as z from 'zod';

const ID_TAIL = '[0-9a-hjkmnp-tv-z]{16}';
const id = (prefix: string) =>
  z.string().regex(new RegExp(`^${prefix}_${ID_TAIL}$`), `must be an id of the form ${prefix}_<16 characters>`);

export const missionIdSchema = id('msn').describe('Mission id.');
export const phaseIdSchema = id('phs').describe('Phase id.');
export const runIdSchema = id('run').describe('Run id.');
export const turnIdSchema = id('trn').describe('Turn id.');
export const nodeIdSchema = id('nod').describe('Node id.');
export const workspaceIdSchema = id('wsp').describe('Workspace id.');
export const artifactIdSchema = id('art').describe('Artifact id.');

/** SHA-256 as 64 lower-case hexadecimal digits. */
export const digestSchema = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hexadecimal');
/** Git object id (SHA-1) as 40 lower-case hexadecimal digits. */
export const gitShaSchema = z.string().regex(/^[0-9a-f]{40}$/, 'must be a git object id of 40 hexadecimal digits');
/** Time as ISO 8601 with milliseconds, UTC. */
export const timeSchema = z.iso.datetime({ precision: 3 });
export const countSchema = z.int().min(0);
/** A duration in `ms`, above zero and at most 7 days. */
export const durationMsSchema = z
  .int()
  .min(1)
  .max(7 * 24 * 3600 * 1000);
export const attemptSchema = z.int().min(1).max(1000).describe('Attempt number: the fencing token within an epoch.');
export const epochSchema = z.int().min(1).describe('Epoch of the database: the first half of the fencing token.');

/** Upper bounds of texts a caller may send. */
export const MAX_TASK_CHARS = 100_000;
export const MAX_COMMAND_CHARS = 32_768;
export const MAX_ALLOW_ENTRIES = 256;
export const MAX_PHASES = 16;
export const MAX_AGENT_FILES = 32;
export const MAX_LAYER_FILES = 64;

export const taskSchema = z.string().trim().min(1, 'must not be blank').max(MAX_TASK_CHARS);
export const commandSchema = z
  .string()
  .max(MAX_COMMAND_CHARS)
  .refine((text) => text.trim() !== '', 'must not be blank')
  .refine((text) => !text.includes('\0'), 'must not hold a NUL');
export const allowListSchema = z.array(z.string().min(1).max(300)).max(MAX_ALLOW_ENTRIES);
/** Lets a named host have addresses that are not public; only an operator may say so. */
export const addressRuleSchema = z.strictObject({
  host: z.string().min(1).max(300).describe('Name as in an allow-list, without a port.'),
  addresses: z.array(z.string().min(1).max(64)).min(1).max(64).describe('Addresses or CIDR ranges.'),
});
export const MAX_ADDRESS_RULES = 64;
export const addressRulesSchema = z.array(addressRuleSchema).max(MAX_ADDRESS_RULES);
const budget = {
  bytes: z.int().min(1).optional().describe('`bytes` of tunnels, both directions together.'),
  connections: z.int().min(1).optional().describe('Tunnels opened, ended ones too.'),
};
/** How much an attempt of a turn may send and fetch, as the operator bounds it. */
export const egressBudgetsSchema = z.strictObject({
  turn: z.strictObject(budget).optional().describe('All hosts together.'),
  eachHost: z.strictObject(budget).optional().describe('Each name that no entry of `hosts` covers.'),
  hosts: z
    .array(z.strictObject({ host: z.string().min(1).max(300), ...budget }))
    .max(64)
    .optional(),
});
/** Name of an injected agent file: one path component, portable characters. */
export const fileNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must be a plain file name');

/** Path of a file in a tree: relative, of plain components. */
export const treePathSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine((path) => !path.includes('\0'), 'must not hold a NUL')
  .refine((path) => path.split('/').every((part) => !['', '.', '..'].includes(part)), 'must be a relative path of plain components');
/** The files that a set-up reads, and all of the tree that a set-up which is kept as a layer gets to see. */
export const layerFilesSchema = z.array(treePathSchema).max(MAX_LAYER_FILES);

export const driverSchema = z.enum(['process', 'qemu', 'firecracker']);
export const isolationSchema = z.enum(['vm', 'bubblewrap', 'none']).describe('What separated the attempt from the host.');
export const phaseKindSchema = z.enum(['research', 'coding', 'benchmark', 'security_scan', 'preview']);

export type Driver = z.infer<typeof driverSchema>;
export type Isolation = z.infer<typeof isolationSchema>;
export type PhaseKind = z.infer<typeof phaseKindSchema>;

/** The id of an image, kernel or payload: the SHA-256 of what it is and says. */
export const imageIdSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/);
/** A name that an image store gives to one of them; what is only digits of a digest is taken for the end of an id. */
export const imageNameSchema = z.string().regex(/^(?![0-9a-f]+$)[a-z][a-z0-9._-]{0,62}$/);
/** What settings call one by. */
export const imageReferenceSchema = z.union([imageNameSchema, imageIdSchema], 'must be a name of the image store, or an id (sha256:...)');

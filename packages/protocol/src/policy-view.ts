import * as z from 'zod';
import { countSchema, missionIdSchema, timeSchema, turnIdSchema } from './values.ts';

/** The parts of a phase that have a reach of their own. */
export const policyPartSchema = z.enum(['setup', 'run']);

export const policyRemedySchema = z.object({
  by: z.enum(['mission', 'operator', 'both']).describe('Who has to allow it: the mission need only ask, or the ceiling has to be raised.'),
  entry: z.string().describe('Entry of an allow-list, or `rule:NAME`.'),
});

/** The answer to "may it reach this?", by name and port. */
export const policyVerdictSchema = z.object({
  verdict: z.enum(['allowed', 'denied', 'malformed']),
  reason: z.string(),
  part: policyPartSchema,
  host: z.string().nullable().describe('The normalised name; null where there is none.'),
  port: z.int(),
  rule: z.string().nullable().describe('The entry that decided.'),
  origin: z.string().nullable().describe('Who asked for it: `mission`, `missions`, `backend NAME` or `rule:NAME`.'),
  remedy: policyRemedySchema.nullable().describe('What would allow it; null where it is allowed, or no rule can.'),
  policy: z.string().describe('Where the policy is from.'),
});
export type PolicyVerdict = z.infer<typeof policyVerdictSchema>;

/** Something that a mission asks for and that the policy of the server leaves out, in part or as a whole. */
export const policyWarningSchema = z.object({
  code: z.enum(['policy_above_ceiling', 'policy_narrowed']).describe('Nothing of it passes; or a part of it does.'),
  part: policyPartSchema,
  origin: z.string().describe('Who asks for it: `mission`, `backend NAME` or `rule:NAME`.'),
  entry: z.string().describe('What is asked for, as an entry of an allow-list.'),
  leaves: z.array(z.string()).describe('What of it passes.'),
  bound: z.enum(['ceiling', 'preset']).describe('What stands in the way.'),
  message: z.string(),
  action: z.string(),
});
export type PolicyWarning = z.infer<typeof policyWarningSchema>;

/** The answer to what a mission would be told of its asking; nothing is stored. */
export const policyAskedSchema = z.object({ warnings: z.array(policyWarningSchema) });

const target = { purpose: z.enum(['setup', 'agent', 'check']), host: z.string().nullable(), port: z.int().nullable() };

/** What a mission reached and what it was refused, counted from its audit. */
export const policyExplanationSchema = z.object({
  missionId: missionIdSchema,
  policy: z.object({ source: z.string(), digest: z.string() }).describe('The policy as it is now, by which the remedies are said.'),
  reached: z.array(
    z.object({
      ...target,
      rule: z.string().nullable(),
      connections: countSchema.describe('Tunnels that have ended.'),
      bytesIn: countSchema,
      bytesOut: countSchema,
      remedy: policyRemedySchema.nullable().optional().describe('What would allow it to a mission that asks the same and learns nothing.'),
      allowedNow: z.boolean().optional().describe('The policy of now lets it through to such a mission, by name, port and protocol.'),
    }),
  ),
  open: z
    .array(
      z.object({
        ...target,
        turnId: turnIdSchema,
        attempt: countSchema,
        connection: countSchema,
        address: z.string().nullable(),
        rule: z.string().nullable(),
        since: timeSchema.describe('When the server was told.'),
        bytesIn: countSchema.nullable().describe('So far; null: nodes tell it at the end.'),
        bytesOut: countSchema.nullable(),
      }),
    )
    .optional()
    .describe('Tunnels of attempts under way that are open by the newest that the server was told. Absent: the server does not say.'),
  totals: z
    .object({ tunnels: countSchema, refusals: countSchema, bytesIn: countSchema, bytesOut: countSchema })
    .optional()
    .describe('Of the whole audit, whatever is listed. Tunnels that are open are counted without bytes.'),
  learning: z.boolean().optional().describe('The mission is a learning run.'),
  refused: z.array(
    z.object({
      ...target,
      reason: z.string(),
      rule: z.string().nullable(),
      connections: countSchema.describe('Lines of the audit; of one kind in one attempt at most 100 are written.'),
      remedy: policyRemedySchema.nullable(),
      allowedNow: z.boolean().describe('The policy of now would let it through by name and port.'),
    }),
  ),
  truncated: z.boolean().describe('There are more kinds than are listed.'),
});
export type PolicyExplanation = z.infer<typeof policyExplanationSchema>;

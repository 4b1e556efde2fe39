import {
  countSchema,
  deliverySchema,
  deniedHostSchema,
  excludedSchema,
  gitShaSchema,
  isolationSchema,
  missionIdSchema,
  missionStateSchema,
  outcomeSchema,
  policyWarningSchema,
} from '@firecrew/protocol';
import * as z from 'zod';

/** What became of `--push`. */
export const pushedSchema = z.enum(['not_wanted', 'pushed', 'up_to_date', 'failed', 'awaiting_approval']);
export type Pushed = z.infer<typeof pushedSchema>;

/** The last line of `run --json`; every line before it is a mission event of the protocol. */
export const runEndedSchema = z.strictObject({
  kind: z.literal('run.ended'),
  missionId: missionIdSchema.nullable().describe('Null where no mission was created.'),
  missionState: missionStateSchema.nullable(),
  outcome: outcomeSchema.nullable(),
  detail: z.string(),
  branch: z.string().nullable().describe('Branch in the repository of the caller; for a URL, the one that was delivered.'),
  commit: gitShaSchema.nullable(),
  baseCommit: gitShaSchema.nullable(),
  verified: z.boolean().describe('The check passed in a fresh sandbox on exactly this tree.'),
  isolation: isolationSchema.nullable(),
  diffstat: z.object({ files: countSchema, insertions: countSchema, deletions: countSchema }).nullable(),
  checkInputsChanged: z.array(z.string()),
  protectedPaths: z.array(z.string()),
  delivery: deliverySchema.shape.state.nullable(),
  denied: z.array(deniedHostSchema),
  warnings: z.array(policyWarningSchema).describe('What was asked for and the policy left out.'),
  excluded: z.array(excludedSchema).describe('Folders that were left out of the result.'),
  leftOut: deliverySchema.shape.leftOut,
  unfiltered: deliverySchema.shape.unfiltered,
  pushed: pushedSchema,
  pushDetail: z.string(),
  exitCode: z.int().min(0).max(255),
  error: z.object({ code: z.string(), message: z.string(), action: z.string().optional(), id: z.string().optional() }).nullable(),
});
export type RunEnded = z.infer<typeof runEndedSchema>;

/** JSON Schema of {@link runEndedSchema}, as it is published. */
export function runEventJsonSchema(): string {
  const schema = z.toJSONSchema(runEndedSchema, { io: 'output' });
  return `${JSON.stringify({ title: 'Last line of `firecrew run --json`', ...schema }, null, 2)}\n`;
}

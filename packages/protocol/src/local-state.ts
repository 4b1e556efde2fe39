import * as z from 'zod';
import { countSchema } from './values.ts';

/** `run/server.json` of a home folder: valid only if `/readyz` answers with the same home id. */
export const serverFileSchema = z.object({
  pid: z.int().min(1),
  startTicks: z.string(),
  bootId: z.string(),
  url: z.url(),
  homeId: z.string(),
  version: z.string(),
  generation: z.int(),
});
export type ServerFile = z.infer<typeof serverFileSchema>;

const processView = z.object({ pid: z.int().min(1), startTicks: z.string() }).nullable();

/** `run/supervisor.json`: the processes of one home as its supervisor sees them. */
export const supervisorFileSchema = z.object({
  supervisor: processView,
  database: processView,
  server: processView,
  nodeAgent: processView,
  restarts: countSchema,
  bootId: z.string(),
});
export type SupervisorFile = z.infer<typeof supervisorFileSchema>;

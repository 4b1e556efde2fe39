import * as z from 'zod';
import { policyFileSchema } from './policy-schema.ts';

/** JSON Schema of a policy file, as it is published: for editors and for checks before a rollout. */
export function policyJsonSchema(): string {
  const schema = z.toJSONSchema(policyFileSchema, { io: 'input' });
  return `${JSON.stringify({ title: 'firecrew.policy.yaml', ...schema }, null, 2)}\n`;
}

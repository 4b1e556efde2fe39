import { addUnread, type BatchParts } from './batch-parts.ts';
import { checkFields, type Findings, isNothing, type JsonObject, rulesOf } from './findings.ts';

const ENDPOINT = { openai_responses: '/v1/responses', openai_chat: '/v1/chat/completions' } as const;

/** A batch of OpenAI, whose requests lie in a file: <https://platform.openai.com/docs/api-reference/batch/create>. */
export function checkOpenaiBatch(format: keyof typeof ENDPOINT, body: JsonObject, findings: Findings): BatchParts {
  const rules = rulesOf('completion_window metadata output_expires_after', {
    // What answers must be what the route is for.
    endpoint: (value, at) => (value === ENDPOINT[format] ? undefined : findings.add('unknown', at)),
    input_file_id: (_value, at) => void addUnread(format, at, findings),
  });
  checkFields(body, '', rules, findings);
  if (isNothing(body.endpoint)) findings.add('unknown', 'endpoint');
  if (isNothing(body.input_file_id)) findings.add('unknown', 'input_file_id');
  return null;
}

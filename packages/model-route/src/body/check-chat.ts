import { checkModel } from './check-responses.ts';
import { checkFields, type Findings, findReferences, isNothing, itemsOf, type JsonObject, objectOf, rulesOf } from './findings.ts';

const PARTS = new Set(['text', 'image_url', 'input_audio', 'refusal', 'file']);
const TOOLS = new Set(['function', 'custom']);

/** Chat Completions of OpenAI: <https://platform.openai.com/docs/api-reference/chat/create>. */
export function checkChat(body: JsonObject, findings: Findings): void {
  const rules = rulesOf(
    'max_tokens max_completion_tokens n stop stream stream_options temperature top_p top_k min_p logprobs top_logprobs logit_bias presence_penalty frequency_penalty repetition_penalty seed user safety_identifier metadata response_format tool_choice parallel_tool_calls function_call reasoning_effort verbosity modalities audio prediction service_tier prompt_cache_key prompt_cache_retention',
    {
      model: (value) => checkModel(value, findings),
      messages: (value, at) => {
        for (const message of itemsOf(value)) checkMessage(objectOf(message), at, findings);
      },
      tools: (value, at) => {
        for (const tool of itemsOf(value)) if (!TOOLS.has(String(objectOf(tool)?.type))) findings.add('server_tools', at);
      },
      functions: 'ok',
      web_search_options: 'web_search',
      store: 'stored_conversations',
    },
  );
  checkFields(body, '', rules, findings);
}

function checkMessage(message: JsonObject | undefined, at: string, findings: Findings): void {
  if (message === undefined) {
    findings.add('unknown', at);
    return;
  }
  if (!isNothing(message.audio)) findings.add('stored_conversations', `${at}.audio`);
  if (typeof message.content === 'string') return;
  for (const item of itemsOf(message.content)) {
    const part = objectOf(item);
    if (!PARTS.has(String(part?.type))) findings.add('unknown', `${at}.content.type`);
    findReferences(part, `${at}.content`, findings);
  }
}

/** What can be changed of a stored answer. */
export function checkStoredChat(body: JsonObject, findings: Findings): void {
  checkFields(body, '', rulesOf('metadata'), findings);
}

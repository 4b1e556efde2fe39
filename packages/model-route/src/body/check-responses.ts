import type { ModelFeature } from '../formats.ts';
import { checkFields, type Findings, findReferences, isNothing, itemsOf, type JsonObject, objectOf, rulesOf } from './findings.ts';

type Rules = Readonly<Record<string, 'ok' | ModelFeature>>;

/** Tools by type: those that the agent carries out pass. */
const TOOLS: Rules = {
  function: 'ok',
  custom: 'ok',
  local_shell: 'ok',
  apply_patch: 'ok',
  computer: 'ok',
  computer_use_preview: 'ok',
  file_search: 'files',
  code_interpreter: 'code_execution',
  image_generation: 'server_tools',
  mcp: 'remote_mcp',
};

/** Items of a conversation by type. */
const ITEMS: Rules = {
  message: 'ok',
  function_call: 'ok',
  function_call_output: 'ok',
  custom_tool_call: 'ok',
  custom_tool_call_output: 'ok',
  local_shell_call: 'ok',
  local_shell_call_output: 'ok',
  shell_call: 'ok',
  shell_call_output: 'ok',
  apply_patch_call: 'ok',
  apply_patch_call_output: 'ok',
  computer_call: 'ok',
  computer_call_output: 'ok',
  reasoning: 'ok',
  compaction: 'ok',
  tool_search_call: 'ok',
  tool_search_output: 'ok',
  // Its tools are judged as those of the request.
  additional_tools: 'ok',
  item_reference: 'stored_conversations',
  web_search_call: 'web_search',
  file_search_call: 'files',
  code_interpreter_call: 'code_execution',
  image_generation_call: 'server_tools',
  mcp_call: 'remote_mcp',
  mcp_list_tools: 'remote_mcp',
  mcp_approval_request: 'remote_mcp',
  mcp_approval_response: 'remote_mcp',
};

/** Parts of a message by type. */
const PARTS: Rules = {
  input_text: 'ok',
  output_text: 'ok',
  text: 'ok',
  refusal: 'ok',
  summary_text: 'ok',
  reasoning_text: 'ok',
  input_image: 'ok',
  input_file: 'ok',
  input_audio: 'ok',
  computer_screenshot: 'ok',
};

/** Models that search or browse by themselves. */
const SEARCHING_MODEL = /(?:^|[-:/._])(?:search|online|deep-research)(?:$|[-:/._])/i;

/** Responses of OpenAI: <https://platform.openai.com/docs/api-reference/responses>. */
export function checkResponses(body: JsonObject, findings: Findings): void {
  const rules = rulesOf(
    'instructions max_output_tokens max_tool_calls stream stream_options temperature top_p top_logprobs truncation metadata user safety_identifier prompt_cache_key prompt_cache_retention parallel_tool_calls tool_choice text reasoning include service_tier verbosity context_management client_metadata',
    {
      model: (value) => checkModel(value, findings),
      input: (value, at) => checkInput(value, at, findings),
      tools: (value, at) => checkTools(value, at, findings),
      store: 'stored_conversations',
      previous_response_id: 'stored_conversations',
      conversation: 'stored_conversations',
      prompt: 'stored_conversations',
      background: 'background',
    },
  );
  checkFields(body, '', rules, findings);
}

/** Finds a model whose name says that it searches. */
export function checkModel(value: unknown, findings: Findings): void {
  if (typeof value === 'string' && SEARCHING_MODEL.test(value)) findings.add('web_search', 'model');
}

function checkTools(value: unknown, at: string, findings: Findings): void {
  for (const item of itemsOf(value)) {
    const tool = objectOf(item);
    const type = typeof tool?.type === 'string' ? tool.type : '';
    if (type === 'shell') {
      const place = objectOf(tool?.environment)?.type;
      // A shell without a place, or in the client's, is the agent's; every other one is a container of the provider.
      if (!isNothing(tool?.environment) && place !== 'local') findings.add('code_execution', at);
      continue;
    }
    if (type === 'tool_search' && tool?.execution === 'client') continue;
    if (type === 'namespace') {
      checkTools(tool?.tools, `${at}.tools`, findings);
      continue;
    }
    const rule = /^web_search/.test(type) ? 'web_search' : TOOLS[type];
    if (rule === undefined) findings.add('server_tools', at);
    else if (rule !== 'ok') findings.add(rule, at);
  }
}

function checkInput(value: unknown, at: string, findings: Findings): void {
  if (typeof value === 'string') return;
  for (const entry of itemsOf(value)) {
    const item = objectOf(entry);
    if (item === undefined) {
      findings.add('unknown', at);
      continue;
    }
    // An item without a type is a message where it has a role; one with an id alone refers to a stored one.
    const type = item.type ?? (item.role === undefined ? 'item_reference' : 'message');
    const rule = typeof type === 'string' ? ITEMS[type] : undefined;
    if (rule === undefined) findings.add('unknown', `${at}.type`);
    else if (rule !== 'ok') findings.add(rule, at);
    // Tools that the agent found are tools of the conversation from then on.
    checkTools(item.tools, `${at}.tools`, findings);
    for (const name of ['content', 'output', 'summary']) checkParts(item[name], `${at}.${name}`, findings);
  }
}

function checkParts(value: unknown, at: string, findings: Findings): void {
  if (typeof value === 'string') return;
  for (const item of itemsOf(value)) {
    const part = objectOf(item);
    const { type } = part ?? {};
    // Outputs of a shell are objects without a type: text that the agent made.
    if (type !== undefined && (typeof type !== 'string' || (PARTS[type] === undefined && type !== 'shell_call_output')))
      findings.add('unknown', `${at}.type`);
    findReferences(part, at, findings);
  }
}

/** What is written to a conversation that the provider keeps: <https://platform.openai.com/docs/api-reference/conversations>. */
export function checkConversation(body: JsonObject, findings: Findings): void {
  checkFields(body, '', rulesOf('metadata', { items: (value, at) => checkInput(value, at, findings) }), findings);
}

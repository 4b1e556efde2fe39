import type { ModelFeature } from '../formats.ts';
import type { BatchParts } from './batch-parts.ts';
import { checkFields, type Findings, findReferences, isNothing, itemsOf, type JsonObject, objectOf, rulesOf } from './findings.ts';

/** Tools that the agent carries out itself. */
const CLIENT_TOOL = /^(?:custom|(?:bash|text_editor|computer|memory)_\d{8})$/;
const SERVER_TOOLS: readonly (readonly [RegExp, ModelFeature])[] = [
  [/^web_search/, 'web_search'],
  [/^web_fetch/, 'web_fetch'],
  [/^code_execution/, 'code_execution'],
  [/^mcp_/, 'remote_mcp'],
];

/** Content blocks that carry their content themselves; what a server's tool left in a conversation belongs to that tool. */
const BLOCKS: Readonly<Record<string, 'ok' | ModelFeature>> = {
  text: 'ok',
  image: 'ok',
  document: 'ok',
  search_result: 'ok',
  tool_use: 'ok',
  tool_result: 'ok',
  tool_reference: 'ok',
  thinking: 'ok',
  redacted_thinking: 'ok',
  compaction: 'ok',
  server_tool_use: 'server_tools',
  web_search_tool_result: 'web_search',
  web_fetch_tool_result: 'web_fetch',
  code_execution_tool_result: 'code_execution',
  bash_code_execution_tool_result: 'code_execution',
  text_editor_code_execution_tool_result: 'code_execution',
  mcp_tool_use: 'remote_mcp',
  mcp_tool_result: 'remote_mcp',
  container_upload: 'files',
};
const SOURCES: Readonly<Record<string, 'ok' | ModelFeature>> = {
  base64: 'ok',
  text: 'ok',
  content: 'ok',
  url: 'url_sources',
  file: 'files',
};

/** Messages of Anthropic: <https://docs.anthropic.com/en/api/messages>. */
export function checkAnthropic(body: JsonObject, findings: Findings, place = ''): void {
  const rules = rulesOf(
    'model max_tokens stop_sequences stream temperature top_p top_k metadata thinking tool_choice service_tier context_management output_config output_format cache_control inference_geo speed',
    {
      messages: (value, at) => {
        for (const message of itemsOf(value)) checkMessage(objectOf(message), at, findings);
      },
      system: (value, at) => checkContent(value, at, findings),
      tools: (value, at) => checkTools(value, at, findings),
      mcp_servers: 'remote_mcp',
      container: 'code_execution',
    },
  );
  checkFields(body, place, rules, findings);
}

function checkMessage(message: JsonObject | undefined, at: string, findings: Findings): void {
  const rules = rulesOf('role output_config', { content: (value, place) => checkContent(value, place, findings) });
  if (message === undefined) findings.add('unknown', at);
  else checkFields(message, at, rules, findings);
}

function checkTools(value: unknown, at: string, findings: Findings): void {
  for (const item of itemsOf(value)) {
    const tool = objectOf(item);
    const type = tool?.type;
    if (tool === undefined) findings.add('unknown', at);
    else if (type === undefined || type === null) continue;
    else if (typeof type !== 'string') findings.add('unknown', `${at}.type`);
    else if (!CLIENT_TOOL.test(type)) findings.add(SERVER_TOOLS.find(([name]) => name.test(type))?.[1] ?? 'server_tools', at);
  }
}

function checkContent(value: unknown, at: string, findings: Findings): void {
  if (typeof value === 'string') return;
  for (const item of itemsOf(value)) {
    const block = objectOf(item);
    if (block === undefined) {
      if (typeof item !== 'string') findings.add('unknown', at);
      continue;
    }
    const rule = typeof block.type === 'string' ? BLOCKS[block.type] : undefined;
    if (rule === undefined) findings.add('unknown', `${at}.type`);
    else if (rule !== 'ok') findings.add(rule, at);
    checkSource(block, at, findings);
    if (block.type === 'tool_result' || block.type === 'search_result') checkContent(block.content ?? '', `${at}.content`, findings);
  }
}

function checkSource(block: JsonObject, at: string, findings: Findings): void {
  const { type, source } = block;
  // The source of a search result is a name for people.
  if (isNothing(source) || type === 'search_result') return;
  const object = objectOf(source);
  const rule = typeof object?.type === 'string' ? SOURCES[object.type] : undefined;
  if (rule === undefined) findings.add('unknown', `${at}.source`);
  else if (rule !== 'ok') findings.add(rule, `${at}.source`);
  if (object?.type === 'content') checkContent(object.content, `${at}.source.content`, findings);
  else findReferences(object, `${at}.source`, findings);
}

/** The requests of a batch, each a whole one: <https://docs.anthropic.com/en/api/creating-message-batches>. */
export function checkAnthropicBatch(body: JsonObject, findings: Findings): BatchParts {
  const requests: JsonObject[] = [];
  const rules = rulesOf('', {
    requests: (value, at) => {
      for (const item of itemsOf(value)) {
        const entry = objectOf(item);
        const params = objectOf(entry?.params);
        if (entry === undefined || params === undefined) findings.add('unknown', at);
        else {
          checkFields(entry, at, rulesOf('custom_id params'), findings);
          checkAnthropic(params, findings, `${at}.params`);
          requests.push(params);
        }
      }
    },
  });
  checkFields(body, '', rules, findings);
  return requests;
}

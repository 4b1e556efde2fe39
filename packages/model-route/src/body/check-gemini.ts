import type { ModelFeature } from '../formats.ts';
import { addUnread, type BatchParts } from './batch-parts.ts';
import {
  checkFields,
  type FieldRule,
  type Findings,
  findReferences,
  foldName,
  itemsOf,
  type JsonObject,
  objectOf,
  rulesOf,
} from './findings.ts';

/** Tools by the field that names them; the fields of one tool may stand together. */
const TOOLS: Readonly<Record<string, ModelFeature>> = {
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  enterpriseWebSearch: 'web_search',
  urlContext: 'web_fetch',
  codeExecution: 'code_execution',
  fileSearch: 'files',
  mcpServers: 'remote_mcp',
  retrieval: 'server_tools',
  googleMaps: 'server_tools',
};
/** Where the provider keeps files that were uploaded to it. */
const UPLOADED = /^(?:files\/|https:\/\/generativelanguage\.googleapis\.com\/)/;

/** Content generation of Gemini: <https://ai.google.dev/api/generate-content>. Its servers take each field in two spellings. */
export function checkGemini(body: JsonObject, findings: Findings): void {
  checkFields(body, '', requestRules(findings), findings, true);
}

/** A context that the provider keeps: <https://ai.google.dev/api/caching>. What it holds is part of requests that name it. */
export function checkGeminiCache(body: JsonObject, findings: Findings): void {
  checkFields(body, '', new Map([...requestRules(findings), ...rulesOf('displayName ttl expireTime name', {}, true)]), findings, true);
}

/** A batch, its requests in place or in a file: <https://ai.google.dev/api/batch-api>. */
export function checkGeminiBatch(body: JsonObject, findings: Findings): BatchParts {
  let requests: JsonObject[] | null = [];
  const entries = (value: unknown, at: string) => {
    for (const item of itemsOf(value)) {
      const entry = objectOf(item);
      const request = objectOf(entry?.request);
      if (entry === undefined || request === undefined) findings.add('unknown', at);
      else {
        checkFields(entry, at, rulesOf('request metadata', {}, true), findings, true);
        checkFields(request, `${at}.request`, requestRules(findings), findings, true);
        requests?.push(request);
      }
    }
  };
  const within = (names: string, rules: Readonly<Record<string, FieldRule>>) => (value: unknown, at: string) => {
    const object = objectOf(value);
    if (object === undefined) findings.add('unknown', at);
    else checkFields(object, at, rulesOf(names, rules, true), findings, true);
  };
  const input = within('', {
    requests: within('', { requests: entries }),
    fileName: (_value, at) => {
      requests = addUnread('gemini', at, findings);
    },
  });
  checkFields(body, '', rulesOf('', { batch: within('displayName priority model', { inputConfig: input }) }, true), findings, true);
  return requests;
}

function requestRules(findings: Findings): ReadonlyMap<string, FieldRule> {
  return rulesOf(
    'model generationConfig safetySettings toolConfig labels',
    {
      contents: (value, at) => checkContents(value, at, findings),
      systemInstruction: (value, at) => checkContents(value, at, findings),
      tools: (value, at) => checkTools(value, at, findings),
      cachedContent: 'stored_conversations',
      // The form of countTokens that holds a whole request.
      generateContentRequest: (value) => checkGemini(objectOf(value) ?? {}, findings),
    },
    true,
  );
}

function checkTools(value: unknown, at: string, findings: Findings): void {
  // An empty object is the way to ask for a tool here: there is no value that asks for nothing.
  const named = Object.entries(TOOLS).map(([name, feature]): [string, FieldRule] => [name, () => findings.add(feature, `${at}.${name}`)]);
  const rules = rulesOf('functionDeclarations computerUse', Object.fromEntries(named), true);
  for (const item of itemsOf(value)) {
    const tool = objectOf(item);
    if (tool === undefined) findings.add('unknown', at);
    else checkFields(tool, at, rules, findings, true);
  }
}

function checkContents(value: unknown, at: string, findings: Findings): void {
  const rules = rulesOf(
    'text inlineData functionCall functionResponse thought thoughtSignature videoMetadata mediaResolution',
    {
      fileData: (file, place) => {
        // In both spellings at once, the server takes one of the two.
        const addresses = Object.entries(objectOf(file) ?? {}).filter(([name]) => foldName(name) === 'fileuri');
        const isUploaded = addresses.length > 0 && addresses.every(([, uri]) => typeof uri === 'string' && UPLOADED.test(uri));
        findings.add(isUploaded ? 'files' : 'url_sources', place);
      },
      executableCode: 'code_execution',
      codeExecutionResult: 'code_execution',
    },
    true,
  );
  for (const content of itemsOf(value)) {
    if (typeof content === 'string') continue;
    for (const item of itemsOf(objectOf(content)?.parts)) {
      const part = objectOf(item);
      if (part === undefined) findings.add('unknown', `${at}.parts`);
      else {
        checkFields(part, `${at}.parts`, rules, findings, true);
        findReferences({ ...part, fileData: undefined, file_data: undefined }, `${at}.parts`, findings);
      }
    }
  }
}

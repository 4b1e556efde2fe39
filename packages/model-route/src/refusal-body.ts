import type { ModelFormat } from './formats.ts';
import { type RouteRefusal, refusalStatus } from './reasons.ts';

/** The body of a refusal, in the shape in which clients of the format look for errors; the code of ours stands in all of them. */
export function refusalBody(format: ModelFormat, reason: RouteRefusal, detail: string): string {
  const message = `Firecrew refused this model call: ${detail} (${reason})`;
  const status = refusalStatus(reason);
  switch (format) {
    case 'anthropic_messages':
      return JSON.stringify({ type: 'error', error: { type: anthropicType(status), message, code: reason } });
    case 'openai_responses':
    case 'openai_chat':
      return JSON.stringify({ error: { message, type: openaiType(status), param: null, code: reason } });
    case 'gemini':
      return JSON.stringify({ error: { code: status, message, status: googleStatus(status), details: [{ reason }] } });
    case 'pass_through':
      return JSON.stringify({ error: { code: reason, message } });
  }
}

function anthropicType(status: number): string {
  if (status === 403) return 'permission_error';
  if (status === 413) return 'request_too_large';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}

function openaiType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

function googleStatus(status: number): string {
  if (status === 403) return 'PERMISSION_DENIED';
  if (status === 429) return 'RESOURCE_EXHAUSTED';
  return status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT';
}

import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { FirecrewApiError } from '@firecrew/sdk';
import { cleanLine } from './render/clean-text.ts';

/** An error for people: its code, what happened to which id, and what to do. */
export function describeError(error: unknown): string[] {
  const { code, message, action } = errorBody(error);
  const lines = [`firecrew: ${code}: ${cleanLine(message, 4_000)}`];
  if (action !== undefined) lines.push(`          ${cleanLine(action)}`);
  // Of an answer of the server the place in this program says nothing.
  const isOurs = code === 'internal' && !(error instanceof FirecrewApiError);
  if (isOurs && error instanceof Error && error.stack !== undefined) lines.push(...error.stack.split('\n').slice(1));
  return lines;
}

/** An error as programs read it. */
export function errorBody(error: unknown): { code: string; message: string; action?: string; id?: string } {
  const message = messageOf(error);
  if (!(error instanceof CodedError || error instanceof FirecrewApiError)) return { code: codeOf(error) ?? 'internal', message };
  return {
    code: error.code,
    message,
    ...(error.action === undefined ? {} : { action: error.action }),
    ...(error.id === undefined ? {} : { id: error.id }),
  };
}

/**
 * True where a harness's event stream says in a STRUCTURED error event that the allowance is used up: a result flagged as an error, or a
 * message flagged as an API error. The marker in ordinary agent text or tool output does not count; lines that do not parse are skipped.
 */
export function findAllowanceRefusal(lines: Iterable<string>, marker: string): boolean {
  for (const line of lines) {
    const event = parse(line);
    if (event === undefined) continue;
    const isErrorResult = event.type === 'result' && event.is_error === true;
    const isApiError = event.isApiErrorMessage === true || event.is_api_error === true;
    if (isErrorResult && holds([event.result, event.error, event.errors], marker)) return true;
    if (isApiError && holds([event.message, event.error], marker)) return true;
  }
  return false;
}

function parse(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function holds(fields: readonly unknown[], marker: string): boolean {
  return (
    marker !== '' &&
    fields.some((field) => field !== undefined && (typeof field === 'string' ? field : JSON.stringify(field)).includes(marker))
  );
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

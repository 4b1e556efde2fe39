import { TAP_MAX_BYTES } from './limits.ts';
import { isRecord, parseJson } from './parse-json.ts';

/** One use of a tool, as the tap recorded it. */
export interface ToolUse {
  readonly tool: string;
  /** From the tool's structured input alone; relative to the root of the tree where it lies in it. */
  readonly path?: string;
  readonly failed: boolean;
  /** Type of the subagent that called it. */
  readonly subagent?: string;
}

/** What one drain read. `absent` = no tap file, `empty` = nothing new. */
export interface TapDrain {
  readonly status: 'absent' | 'empty' | 'read';
  readonly records: readonly ToolUse[];
  /** Offset in bytes for the next drain: behind the last newline that was read. */
  readonly cursor: number;
  /** Lines consumed, blank and unknown ones included. */
  readonly lines: number;
  /** Consumed lines that hold text and are no tool event. */
  readonly skippedLines: number;
  /** More than {@link TAP_MAX_BYTES} wait; drain again. */
  readonly truncated: boolean;
}

const PATH_KEYS = ['file_path', 'filePath', 'notebook_path', 'notebookPath', 'path'];
const TOOL_EVENTS = ['PostToolUse', 'PostToolUseFailure', 'PreToolUse'];

/**
 * Reads new tool events of the tap file from `cursor` on. A torn last line is left for the next drain; `final` reads it as a line, since
 * nothing will complete it. `root` is the workspace in the guest.
 */
export function drainTap(
  file: Uint8Array | undefined,
  cursor: number,
  options: { readonly root?: string; readonly final?: boolean } = {},
): TapDrain {
  const nothing = { records: [], cursor, lines: 0, skippedLines: 0, truncated: false };
  if (file === undefined) return { status: 'absent', ...nothing };
  const window = file.subarray(cursor, cursor + TAP_MAX_BYTES);
  const truncated = file.length > cursor + window.length;
  const end = options.final === true && !truncated ? window.length : window.lastIndexOf(0x0a) + 1;
  // A line longer than the window can never end in it: it is passed over, or the drain would stand still.
  const consumed = end === 0 && truncated ? window.length : end;
  if (consumed === 0) return { status: 'empty', ...nothing, truncated };
  const text = new TextDecoder().decode(window.subarray(0, consumed));
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
  const records: ToolUse[] = [];
  let skippedLines = 0;
  for (const line of lines) {
    if (line.trim() === '') continue;
    const record = parseToolUse(line, options.root);
    if (record === undefined) skippedLines += 1;
    else records.push(record);
  }
  return { status: 'read', records, cursor: cursor + consumed, lines: lines.length, skippedLines, truncated };
}

/** One line of the tap as a tool use; undefined for torn lines, other events and blank tool names. Accepts snake and camel case. */
export function parseToolUse(line: string, root?: string): ToolUse | undefined {
  const event = parseJson(line);
  if (!isRecord(event)) return undefined;
  const name = event.hook_event_name ?? event.hookEventName;
  if (name !== undefined && !TOOL_EVENTS.some((known) => known === name)) return undefined;
  const tool = event.tool_name ?? event.toolName;
  if (typeof tool !== 'string' || tool.trim() === '') return undefined;
  const input = event.tool_input ?? event.toolInput;
  const path = isRecord(input) ? PATH_KEYS.map((key) => input[key]).find((value) => typeof value === 'string' && value !== '') : undefined;
  const subagent = event.agent_type ?? event.agentType;
  return {
    tool: tool.trim(),
    ...(typeof path === 'string' ? { path: relativeTo(path, root) } : {}),
    failed: name === 'PostToolUseFailure',
    ...(typeof subagent === 'string' && subagent !== '' ? { subagent } : {}),
  };
}

function relativeTo(path: string, root: string | undefined): string {
  return root !== undefined && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

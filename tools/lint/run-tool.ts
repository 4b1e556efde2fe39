// Runs a tool and gives what it said.
import { spawn } from 'node:child_process';

/** How a tool ended: its exit status and everything it wrote, in order of arrival. */
export interface ToolResult {
  readonly status: number;
  readonly output: string;
}

/** Runs `command` in `cwd` without a terminal or standard input; a tool that cannot start gives status 127. */
export function runTool(
  command: string,
  args: readonly string[],
  cwd: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<ToolResult> {
  return new Promise((done) => {
    const env = { ...process.env, CI: 'true', NO_COLOR: '1', FORCE_COLOR: '0', ...environment };
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => done({ status: 127, output: `cannot start ${command}: ${error.message}` }));
    child.on('close', (code) => done({ status: code ?? 1, output: Buffer.concat(chunks).toString('utf8').trim() }));
  });
}

#!/usr/bin/env node
import { readFileSync } from 'node:fs';

const args = process.argv.slice(2);
const version = readVersion();

// A reader that went away, such as `head`, is no failure of ours; a mission that runs goes on.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

// Nothing heavy is loaded for the one question that scripts ask most.
if (args.length === 1 && (args[0] === '--version' || args[0] === '-V')) {
  process.stdout.write(`${version}\n`);
} else {
  const { runProgram } = await import('./program.ts');
  process.exitCode = await runProgram(args, { version, env: process.env, cwd: process.cwd() });
}

function readVersion(): string {
  const value: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return typeof value === 'object' && value !== null && 'version' in value && typeof value.version === 'string' ? value.version : '0.0.0';
}

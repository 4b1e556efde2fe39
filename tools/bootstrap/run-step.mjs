// Starts child processes: quiet ones whose output is shown only when they fail, and the target, which owns the terminal.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** How often a long step says that it is still at work, in ms. */
const STILL_EVERY_MS = 30_000;
/** Lines of a failed step that are shown. */
const SHOWN_LINES = 60;

/** Lines that say nothing about a failure: the install runs on the caller's Node, everything after it on ours. */
const NOISE = /WARN.*Unsupported engine/;

/** An error whose message alone is what the user should read. */
export class FriendlyError extends Error {
  friendly = true;

  /** `exitCode` is what the process ends with. */
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Progress, on stderr, so that the target's own output stays clean. */
export function say(text) {
  process.stderr.write(`${text}\n`);
}

/** Runs one quiet step; throws a FriendlyError with the end of its output when it fails. */
export async function quietStep({ label, command, args, cwd, env, hint }) {
  say(`${label} ...`);
  const started = Date.now();
  const seconds = () => Math.round((Date.now() - started) / 1000);
  const still = setInterval(() => say(`  still at it (${seconds()} s)`), STILL_EVERY_MS);
  try {
    const { code, signal, output, missing } = await collect(command, args, { cwd, env });
    if (missing) throw new FriendlyError(`cannot find ${command}. ${hint('')}`);
    if (signal !== null)
      throw new FriendlyError(`${label} was ended by ${signal}; run it again to go on.`, 128 + (constants.signals[signal] ?? 0));
    if (code !== 0) {
      const shown = output
        .trimEnd()
        .split('\n')
        .filter((line) => !NOISE.test(line))
        .slice(-SHOWN_LINES)
        .join('\n');
      throw new FriendlyError(`${label} failed (exit ${code}).\n${shown}\n\n${hint(output)}`);
    }
  } finally {
    clearInterval(still);
  }
  say(`  done in ${seconds()} s`);
}

function collect(command, args, { cwd, env }) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const stop = forwardSignals(child);
    const chunks = [];
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', (chunk) => chunks.push(chunk));
    child.on('error', (error) => {
      stop();
      if (error.code === 'ENOENT') done({ code: 127, signal: null, output: '', missing: true });
      else fail(error);
    });
    child.on('close', (code, signal) => {
      stop();
      done({ code, signal, output: Buffer.concat(chunks).toString('utf8'), missing: false });
    });
  });
}

/** Runs the target in the caller's terminal and gives its exit code (128 + n when signal n ended it). */
export function runTarget(command, args, { cwd, env }) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd, env, stdio: 'inherit' });
    const stop = forwardSignals(child);
    child.on('error', (error) => {
      stop();
      fail(error);
    });
    child.on('close', (code, signal) => {
      stop();
      done(signal === null ? (code ?? 1) : 128 + (constants.signals[signal] ?? 0));
    });
  });
}

function forwardSignals(child) {
  const onTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => {
    // A terminal sends Ctrl-C to the whole group: the child has it already, and twice means "at once" to many tools.
    const handler = () => (signal === 'SIGINT' && onTerminal ? undefined : child.kill(signal));
    process.on(signal, handler);
    return [signal, handler];
  });
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler);
  };
}

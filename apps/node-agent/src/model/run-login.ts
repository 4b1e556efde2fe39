import { spawn } from 'node:child_process';
import { CodedError } from '@firecrew/base';
import { LOGIN_ANSWER_MAX_BYTES, type LoginAnswer, readLoginAnswer } from '@firecrew/model-route';

/** Time that the program of a login has, in `ms`. */
export const LOGIN_TIMEOUT_MS = 30_000;

/**
 * Runs the program of a login in a group of its own, which ends with the call. Throws `model_login_failed`, with nothing of what the program
 * wrote: that may hold the credential.
 */
export async function runLogin(command: readonly string[], signal: AbortSignal, timeoutMs = LOGIN_TIMEOUT_MS): Promise<LoginAnswer> {
  const [program = '', ...args] = command;
  const fault = (why: string, cause?: unknown) =>
    new CodedError('model_login_failed', `the command ${program} of a model route ${why}`, {
      id: program,
      action:
        'Run it as the account of the node agent: it prints one line with the credential, or a JSON object with credential and expiresAt.',
      ...(cause === undefined ? {} : { cause }),
    });
  const child = spawn(program, args, { cwd: '/', stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const stop = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It is gone.
    }
  };
  return await new Promise<LoginAnswer>((resolve, reject) => {
    let output = '';
    const end = (finish: () => void): void => {
      clearTimeout(late);
      signal.removeEventListener('abort', onAbort);
      stop();
      child.stdout.destroy();
      finish();
    };
    const onAbort = (): void => end(() => reject(fault('was given up')));
    const late = setTimeout(() => end(() => reject(fault(`did not end within ${timeoutMs} ms`))), timeoutMs);
    signal.addEventListener('abort', onAbort);
    child.once('error', (cause) => end(() => reject(fault('cannot be started', cause))));
    child.stdout.setEncoding('latin1').on('data', (text: string) => {
      output += text;
      if (output.length > LOGIN_ANSWER_MAX_BYTES) end(() => reject(fault(`wrote more than ${LOGIN_ANSWER_MAX_BYTES} bytes`)));
    });
    child.once('close', (code, by) => {
      const answer = code === 0 ? readLoginAnswer(output) : undefined;
      if (answer !== undefined) end(() => resolve(answer));
      else end(() => reject(fault(code === 0 ? 'printed no credential' : `ended with ${code ?? by}`)));
    });
    if (signal.aborted) onAbort();
  });
}

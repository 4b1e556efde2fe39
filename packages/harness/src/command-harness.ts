import { CodedError } from '@firecrew/base';
import { checkCommand, checkEnvironment, type SpawnRefusal } from '@firecrew/spawn-bounds';
import type { AgentFile, FileToPut, Harness, HarnessPaths, RoundInput, RoundPlan } from './harness.ts';

/** Path of the task's text, in every round. */
export const TASK_FILE_VARIABLE = 'FIRECREW_TASK_FILE';
/** Path of the gate's text about the round before; absent in round 1. */
export const FEEDBACK_FILE_VARIABLE = 'FIRECREW_FEEDBACK_FILE';
/** Number of the round, from 1. */
export const ROUND_VARIABLE = 'FIRECREW_ROUND';
/** Folder of the injected agent files. */
export const AGENT_DIR_VARIABLE = 'FIRECREW_AGENT_DIR';

const AGENT_FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const READ_ONLY = 0o444;
const READ_ONLY_EXECUTABLE = 0o555;

/** Runs any command by `/bin/sh -c` in the workspace; each round is a new process. */
export const commandHarness: Harness = { kind: 'command', planRound };

function planRound(input: RoundInput): RoundPlan | SpawnRefusal {
  refuseBrokenRound(input);
  refuseBrokenPaths(input.paths);
  const agentFiles = input.agentFiles ?? [];
  refuseBrokenFiles(agentFiles);
  const command = checkCommand(['/bin/sh', '-c', input.agentCmd]);
  if (command.verdict === 'refused') return command;
  const environment = checkEnvironment(input.env, input.contract === undefined ? {} : { contract: input.contract });
  if (environment.verdict === 'refused') return environment;
  const { paths } = input;
  return {
    verdict: 'ready',
    folders: [...new Set([folderOf(paths.taskFile), folderOf(paths.feedbackFile), paths.agentDir])],
    files: filesOf(input, agentFiles),
    argv: command.argv,
    cwd: paths.workspace,
    callerEnvironment: environment.environment,
    platformEnvironment: {
      [TASK_FILE_VARIABLE]: paths.taskFile,
      ...(input.feedback === undefined ? {} : { [FEEDBACK_FILE_VARIABLE]: paths.feedbackFile }),
      [ROUND_VARIABLE]: String(input.round),
      [AGENT_DIR_VARIABLE]: paths.agentDir,
    },
  };
}

function filesOf(input: RoundInput, agentFiles: readonly AgentFile[]): FileToPut[] {
  const { paths, task, feedback } = input;
  const files: FileToPut[] = [{ path: paths.taskFile, mode: READ_ONLY, source: { kind: 'text', text: withNewline(task) } }];
  if (feedback !== undefined)
    files.push({ path: paths.feedbackFile, mode: READ_ONLY, source: { kind: 'text', text: withNewline(feedback) } });
  for (const file of agentFiles) {
    files.push({ path: `${paths.agentDir}/${file.name}`, mode: READ_ONLY_EXECUTABLE, source: { kind: 'host_file', path: file.hostPath } });
  }
  return files;
}

function refuseBrokenRound(input: RoundInput): void {
  const { round, feedback } = input;
  if (!Number.isSafeInteger(round) || round < 1) throw new CodedError('harness_round_invalid', `round ${round} is no whole number from 1`);
  if ((round === 1) !== (feedback === undefined)) {
    const what = round === 1 ? 'round 1 was given feedback' : `round ${round} was given no feedback`;
    throw new CodedError('harness_round_invalid', what, { action: 'Give feedback to every round but the first.' });
  }
}

/** Nothing of the platform's may land in the delivered tree. */
function refuseBrokenPaths(paths: HarnessPaths): void {
  const plain = /^(?:\/[^/\0]+)+$/;
  for (const [name, path] of Object.entries({ ...paths })) {
    const isPlain = typeof path === 'string' && plain.test(path) && !path.split('/').some((part) => part === '.' || part === '..');
    if (!isPlain) throw new CodedError('harness_paths_invalid', `the path ${name} of the harness is not absolute and plain`);
    if (name !== 'workspace' && (path === paths.workspace || path.startsWith(`${paths.workspace}/`))) {
      throw new CodedError('harness_paths_invalid', `the path ${name} of the harness lies in the workspace`);
    }
  }
}

function refuseBrokenFiles(files: readonly AgentFile[]): void {
  const seen = new Set<string>();
  for (const { name } of files) {
    const shown = JSON.stringify(name.slice(0, 100));
    if (!AGENT_FILE_NAME.test(name)) {
      throw new CodedError('agent_file_invalid', `the agent file ${shown} has no plain name`, {
        action: 'Use letters, digits, ".", "_" and "-".',
      });
    }
    if (seen.has(name))
      throw new CodedError('agent_file_invalid', `two agent files are called ${shown}`, { action: 'Rename one of them.' });
    seen.add(name);
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function withNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

// A real mission on this machine: a scripted agent, a repository with a bug, a bare remote, and nothing else.
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const firecrew = join(here, '../../packages/cli/bundle/command.mjs');
const folder = mkdtempSync(join(tmpdir(), 'firecrew-demo-'));
// Attempts run as users of their own when this runs as root, and walk through to their folders.
if (process.getuid?.() === 0) chmodSync(folder, 0o711);
const home = join(folder, 'home');
const project = join(folder, 'price-list');
const remote = join(folder, 'remote.git');
// A database that the caller's shell names is not the demo's.
const env = { ...process.env, FIRECREW_HOME: home, FIRECREW_DATABASE_URL: 'own', FIRECREW_ALLOW_UNISOLATED: '1' };

const say = (text) => process.stdout.write(`\n> ${text}\n`);
const git = (cwd, ...args) =>
  execFileSync('git', ['-c', 'user.name=Demo', '-c', 'user.email=demo@example.com', ...args], { cwd, encoding: 'utf8' });

/** Runs the command as a person would, and gives its exit code. */
function command(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [firecrew, ...args], { env, cwd: here, stdio: 'inherit' });
    const pass = (signal) => child.kill(signal);
    process.on('SIGINT', pass);
    child.once('error', reject);
    child.once('exit', (code) => {
      process.off('SIGINT', pass);
      resolve(code ?? 1);
    });
  });
}

let exitCode = 1;
try {
  say('A repository with a bug (ten items should be cheaper), and a bare remote to push to:');
  cpSync(join(here, 'project'), project, { recursive: true });
  mkdirSync(remote);
  git(remote, 'init', '-q', '--bare', '-b', 'main');
  git(project, 'init', '-q', '-b', 'main');
  git(project, 'add', '-A');
  git(project, 'commit', '-q', '-m', 'Price list');
  git(project, 'remote', 'add', 'origin', remote);
  git(project, 'push', '-q', 'origin', 'main');
  process.stdout.write(git(project, 'log', '--oneline', '--decorate'));

  const run = [
    'run',
    '--repo',
    project,
    '--task',
    'Ten items must get the discount.',
    '--check',
    'node --test',
    '--agent-cmd',
    './agent.sh',
    '--push',
    'origin',
  ];
  say(`firecrew ${run.map((word) => (/[^\w./-]/.test(word) ? JSON.stringify(word) : word)).join(' ')}`);
  exitCode = await command(...run);

  say('What arrived at the remote:');
  process.stdout.write(git(remote, 'for-each-ref', '--format=%(refname:short) %(objectname:short) %(subject)', 'refs/heads'));
  const branch = git(remote, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/firecrew').trim();
  if (branch === '' || branch.includes('\n')) throw new Error('expected one delivered branch at the remote');
  process.stdout.write(git(remote, 'diff', '--stat', `main..${branch}`));
  process.stdout.write(git(remote, 'diff', `main..${branch}`, '--', 'price.js'));
} finally {
  say('firecrew down');
  const downCode = await command('down', '--force');
  if (exitCode === 0) exitCode = downCode;
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = exitCode;

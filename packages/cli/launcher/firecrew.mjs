#!/usr/bin/env node
// Starts the command of the published package: on the Node that runs this, or on the one that is installed with the package where that one is
// too old. In syntax that old versions can read, so that they get a sentence instead of a syntax error.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const self = realpathSync(fileURLToPath(import.meta.url));
const command = join(dirname(self), 'command.mjs');

function isNewEnough(version) {
  const parts = String(version).replace(/^v/, '').split('.').map(Number);
  return parts[0] > 22 || (parts[0] === 22 && parts[1] >= 13);
}

/** The caller's PATH without the folders that npm and npx put in front of this package: agents are looked up there. */
function callerPath(path) {
  return path
    .split(delimiter)
    .filter((folder) => {
      if (folder === '' || folder.endsWith('node-gyp-bin')) return false;
      return !(folder.endsWith('/node_modules/.bin') && self.startsWith(folder.slice(0, -'.bin'.length)));
    })
    .join(delimiter);
}

/** The Node of the optional package for this machine; undefined where it is not there or does not start here (another C library). */
function packagedNode() {
  try {
    const name = `node-${process.platform}-${process.arch}`;
    const node = join(dirname(createRequire(self).resolve(`${name}${sep}package.json`)), 'bin', 'node');
    if (!existsSync(node)) return undefined;
    const said = spawnSync(node, ['--version'], { encoding: 'utf8' });
    return said.status === 0 && isNewEnough(said.stdout.trim()) ? node : undefined;
  } catch {
    return undefined;
  }
}

function runOn(node) {
  const child = spawn(node, [command].concat(process.argv.slice(2)), { stdio: 'inherit' });
  // A terminal sends Ctrl-C to the child as well; twice would mean something else.
  process.on('SIGINT', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`firecrew: ${node} could not be started: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    if (signal !== null) {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    } else process.exitCode = code;
  });
}

if (process.env.FIRECREW_CALLER_PATH === undefined) process.env.FIRECREW_CALLER_PATH = callerPath(process.env.PATH || '');

if (isNewEnough(process.versions.node)) {
  void import(new URL('./command.mjs', import.meta.url).href);
} else {
  const node = packagedNode();
  if (node === undefined) {
    process.stderr.write(
      `firecrew: needs Node 22.13 or newer, and this is Node ${process.versions.node}. Install a newer one, or install ` +
        'firecrew without leaving out optional packages: they bring their own.\n',
    );
    process.exitCode = 2;
  } else runOn(node);
}

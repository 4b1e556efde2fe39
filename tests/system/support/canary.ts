import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Who ran a canary: an attempt by its marker, or `host` for everything else. */
export interface CanarySighting {
  readonly name: string;
  readonly by: string;
}

/**
 * A folder on the host in which a canary leaves a line when something of a tree is run. A canary says who ran it: processes of an
 * attempt carry their mark, so what is left is the host's.
 */
export class Canaries {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Every user may leave a line there, attempts without isolation too. */
  static async at(folder: string): Promise<Canaries> {
    await mkdir(folder, { recursive: true });
    await chmod(folder, 0o777);
    return new Canaries(folder);
  }

  /** A shell command that leaves the line of canary `name` and goes on whatever comes of it. */
  command(name: string): string {
    return `printf '%s\\n' "\${FIRECREW_ATTEMPT:-host}" 2>/dev/null >> ${this.#folder}/${name} || true`;
  }

  /** A program in shell with that command. */
  script(name: string): string {
    return `#!/bin/sh\n{ ${this.command(name)}; } 2>/dev/null\n`;
  }

  async sightings(): Promise<CanarySighting[]> {
    const names = await readdir(this.#folder);
    const lines = names.map(async (name) =>
      (await readFile(join(this.#folder, name), 'utf8')).split('\n').flatMap((by) => (by === '' ? [] : [{ name, by }])),
    );
    return (await Promise.all(lines)).flat();
  }

  /** Names of the canaries that something else than an attempt has run. */
  async ranOnHost(): Promise<string[]> {
    return [...new Set((await this.sightings()).flatMap(({ name, by }) => (by === 'host' ? [name] : [])))].sort();
  }

  async ranInAttempts(): Promise<string[]> {
    return [...new Set((await this.sightings()).flatMap(({ name, by }) => (by === 'host' ? [] : [name])))].sort();
  }

  /** The files of a tree in which everything that some tool runs plants a canary; `name mode` gives what is executable. */
  tree(): Readonly<Record<string, string>> {
    const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
    const scripts = ['preinstall', 'install', 'postinstall', 'prepare', 'pretest', 'test', 'prepack'];
    const python = (name: string) => `import os\nos.system(${JSON.stringify(this.command(name))})\n`;
    const node = (name: string) => `require('node:child_process').execSync(${JSON.stringify(this.command(name))});\n`;
    return {
      'package.json': json({
        name: 'canary',
        version: '1.0.0',
        scripts: Object.fromEntries(scripts.map((name) => [name, this.command(`npm-${name}`)])),
      }),
      '.npmrc': 'script-shell=./sh\nnode-options=--require ./preload.cjs\nignore-scripts=false\n',
      '.yarnrc.yml': 'yarnPath: ./preload.cjs\n',
      '.pnpmfile.cjs': node('pnpmfile'),
      'preload.cjs': node('preload'),
      'vitest.config.js': node('vitest'),
      'sitecustomize.py': python('sitecustomize'),
      'conftest.py': python('conftest'),
      'setup.py': python('setup-py'),
      Makefile: `all:\n\t${this.command('make')}\n`,
      '.envrc': `${this.command('envrc')}\n`,
      '.gitattributes': '* filter=canary diff=canary merge=canary\n',
      '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "${this.command('submodule')}"\n`,
      '.gitconfig': this.gitSettings(),
      '.vscode/tasks.json': json({
        version: '2.0.0',
        tasks: [{ label: 'x', type: 'shell', command: this.command('vscode'), runOptions: { runOn: 'folderOpen' } }],
      }),
      '.devcontainer/devcontainer.json': json({ initializeCommand: this.command('devcontainer') }),
      '.husky/pre-commit': this.script('husky'),
      '.husky/pre-push': this.script('husky'),
      '.githooks/post-checkout': this.script('githooks'),
      'check.sh': this.script('check'),
      'setup.sh': this.script('setup'),
      ...Object.fromEntries(['git', 'sh', 'node', 'tar', 'zstd', 'ssh', 'bwrap'].map((name) => [name, this.script(`program-${name}`)])),
      'add.js': 'module.exports = (a, b) => a - b;\n',
    };
  }

  /** Settings of git that run programs, but for those of transport and credentials, which are a person's own means to push. */
  gitSettings(): string {
    const run = (name: string) => JSON.stringify(`${this.command(name)}; cat`);
    return `[core]
\tfsmonitor = ${JSON.stringify(`${this.command('fsmonitor')}; false`)}
\thooksPath = .git/planted
\tpager = ${run('pager')}
\teditor = ${run('editor')}
[filter "canary"]
\tclean = ${run('clean')}
\tsmudge = ${run('smudge')}
\trequired = true
[diff "canary"]
\ttextconv = ${run('textconv')}
[diff]
\texternal = ${run('external-diff')}
[merge "canary"]
\tdriver = ${run('merge')}
[gpg]
\tprogram = ${run('gpg')}
[uploadpack]
\tpackObjectsHook = ${run('pack-objects')}
[alias]
\tstatus = "!${this.command('alias').replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"
`;
  }

  /** Plants hooks and settings in a repository on the host. */
  async plant(repository: string): Promise<void> {
    const config = join(repository, '.git/config');
    await writeFile(config, `${await readFile(config, 'utf8')}${this.gitSettings()}`);
    for (const folder of ['hooks', 'planted']) {
      for (const hook of HOOKS) {
        const path = join(repository, '.git', folder, hook);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, this.script(`hook-${hook}`), { mode: 0o755 });
      }
    }
  }
}

/** Hooks that git runs on the side of a working tree. */
const HOOKS = [
  'applypatch-msg',
  'commit-msg',
  'fsmonitor-watchman',
  'post-applypatch',
  'post-checkout',
  'post-commit',
  'post-index-change',
  'post-merge',
  'post-rewrite',
  'pre-applypatch',
  'pre-auto-gc',
  'pre-commit',
  'pre-merge-commit',
  'pre-push',
  'pre-rebase',
  'prepare-commit-msg',
  'reference-transaction',
  'sendemail-validate',
];

import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the person or the service behind a stand-in does. `dismissed`: the keychain is locked and its prompt is closed unanswered. */
export type Mood = 'open' | 'dismissed' | 'locked' | 'no_service' | 'denied' | 'hangs' | 'endless' | 'killed' | 'echoes' | 'forgets';

/** A credential tool on a PATH of its own, with the answers and exit codes that the real one documents. */
export class StandIn {
  readonly folder = mkdtempSync(join(tmpdir(), 'key-tool-'));
  readonly env: { readonly PATH: string; readonly SECRET: string };

  constructor(name: 'secret-tool' | 'security') {
    const bin = join(this.folder, 'bin');
    mkdirSync(bin);
    const file = join(bin, name);
    writeFileSync(file, `#!${process.execPath}\n${COMMON(this.folder)}\n${name === 'security' ? SECURITY : SECRET_TOOL}`);
    chmodSync(file, 0o755);
    this.env = { PATH: bin, SECRET: 'of the caller' };
    this.mood('open');
  }

  mood(mood: Mood): void {
    writeFileSync(join(this.folder, 'mood'), mood);
  }

  /** Arguments and environment of every call so far. */
  calls(): string {
    const file = join(this.folder, 'calls');
    return existsSync(file) ? readFileSync(file, 'utf8') : '';
  }

  /** Changes the text of every entry. */
  change(how: (text: string) => string): void {
    const file = join(this.folder, 'entries.json');
    const entries = JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
    writeFileSync(file, JSON.stringify(Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, how(text)]))));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const COMMON = (folder: string): string => `
const fs = require('node:fs');
const place = ${JSON.stringify(folder)};
const args = process.argv.slice(2);
const mood = fs.readFileSync(place + '/mood', 'utf8');
fs.appendFileSync(place + '/calls', JSON.stringify([args, process.env]) + '\\n');
const entries = fs.existsSync(place + '/entries.json') ? JSON.parse(fs.readFileSync(place + '/entries.json', 'utf8')) : {};
const keep = () => mood === 'forgets' || fs.writeFileSync(place + '/entries.json', JSON.stringify(entries));
const input = () => fs.readFileSync(0, 'utf8');
const end = (code, error = '') => { process.stderr.write(error); process.exitCode = code; };
if (mood === 'killed') process.kill(process.pid, 'SIGKILL');
if (mood === 'endless') { for (;;) try { fs.writeSync(1, 'x'.repeat(4096)); } catch { process.exit(1); } }
if (mood === 'hangs') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
`;

const SECRET_TOOL = `
const [action] = args;
const at = JSON.stringify(args.filter((part) => !part.startsWith('--')).slice(1));
const fail = (text) => end(1, 'secret-tool: ' + text + '\\n');
const main = () => {
  if (mood === 'no_service') return fail('The name org.freedesktop.secrets was not provided by any .service files');
  if (mood === 'locked') return fail('Cannot create an item in a locked collection');
  if (mood === 'denied') return fail('Access denied');
  if (mood === 'echoes') return fail(JSON.stringify(args) + (action === 'store' ? input() : '') + JSON.stringify(entries));
  if (action === 'store') {
    const secret = input();
    // It reads at most 8,191 bytes of a secret.
    if (secret.length > 8191) return fail('password is too long');
    if (mood === 'dismissed') return fail('Prompt was dismissed');
    entries[at] = secret;
    keep();
  } else if (action === 'lookup') {
    if (entries[at] === undefined || mood === 'dismissed') return end(1);
    process.stdout.write(entries[at]);
  } else if (action === 'search') {
    // What is locked is named, without its secret.
    if (entries[at] === undefined) return;
    process.stdout.write('[/org/freedesktop/secrets/collection/login/1]\\nlabel = x\\n' + (mood === 'dismissed' ? '' : 'secret = ' + entries[at] + '\\n'));
    process.stderr.write('attribute.service = firecrew-seat-key\\n');
  } else if (action === 'clear') {
    if (entries[at] === undefined || mood === 'dismissed') return end(1);
    delete entries[at];
    keep();
  } else fail('no such action');
};
main();
`;

const SECURITY = `
const option = (list, name) => list[list.indexOf(name) + 1];
const fail = (code, text) => { process.stderr.write('security: ' + text + '\\n'); return code; };
const run = (list) => {
  const at = JSON.stringify([option(list, '-s'), option(list, '-a')]);
  if (mood === 'no_service') return fail(50, 'The specified keychain could not be found.');
  if (mood === 'locked') return fail(36, 'SecKeychainSearchCopyNext: User interaction is not allowed.');
  if (mood === 'dismissed') return fail(128, 'User canceled the operation.');
  if (mood === 'denied') return fail(51, 'The user name or passphrase you entered is not correct.');
  if (mood === 'echoes') return fail(1, JSON.stringify(list) + JSON.stringify(entries));
  if (list[0] === 'add-generic-password') {
    if (entries[at] !== undefined && !list.includes('-U')) return fail(45, 'The specified item already exists in the keychain.');
    entries[at] = option(list, '-w');
    keep();
    return 0;
  }
  if (entries[at] === undefined) return fail(44, 'The specified item could not be found in the keychain.');
  if (list[0] === 'delete-generic-password') {
    delete entries[at];
    keep();
    process.stdout.write('password has been deleted.\\n');
  } else if (list[0] === 'find-generic-password') process.stdout.write(entries[at] + '\\n');
  else return fail(2, 'unknown command');
  return 0;
};
if (args[0] === '-i') {
  for (const line of input().split('\\n').filter((each) => each !== '')) {
    // It reads 4,095 bytes of a line, and splits it as a shell does.
    const list = [...line.slice(0, 4095).matchAll(/"((?:[^"\\\\\\\\]|\\\\\\\\.)*)"|(\\S+)/g)].map(([, quoted, plain]) => quoted ?? plain);
    const code = run(list);
    // As in a shell, a command that failed is told, with the framework's whole status, and the tool ends well.
    if (code !== 0) process.stderr.write(list[0] + ': returned ' + (code - 25344) + '\\n');
  }
} else process.exitCode = run(args);
`;

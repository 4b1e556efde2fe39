import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { NAME_SERVER, OWN_ADDRESS, UPSTREAMS } from './net-world/answers.ts';

const PROGRAMS = fileURLToPath(new URL('./net-world/', import.meta.url));
/** Far end of the card through which everything goes that has no other way. */
const ELSEWHERE = '100.64.9.1';
const GATEWAY_MAC = '02:00:00:00:00:01';

/** What came to the outside of a world. */
export interface OutsideCounts {
  /** Look-ups of each name. */
  readonly lookups: Readonly<Record<string, number>>;
  readonly unknown: number;
  /** TLS connections that were made. */
  readonly tunnels: number;
}

/** What came to listeners of the host where nothing may come. */
export interface TrapCounts {
  readonly tunnels: number;
  readonly proxied: number;
}

/** Why there can be no world here, as a part of a test's name; empty where there can. */
export function withoutWorld(): string {
  if (process.getuid?.() !== 0) return ' (not run: network namespaces need root)';
  try {
    execFileSync('unshare', ['--net', '--mount', 'ip', 'link', 'add', 'one-end', 'type', 'veth', 'peer', 'name', 'other-end'], {
      stdio: 'ignore',
    });
    return '';
  } catch {
    return ' (not run: unshare and ip cannot make a network here)';
  }
}

/**
 * A host in a network of its own. One card leads to an upstream and a name server; another one is the way to every other address, and what leaves
 * through it is counted at its far end. Its resolver asks that name server alone.
 */
export class NetWorld {
  readonly #folder: string;
  readonly #host: Program;
  readonly #outside: Program;
  readonly #trap: Program;

  private constructor(folder: string, host: Program, outside: Program, trap: Program) {
    this.#folder = folder;
    this.#host = host;
    this.#outside = outside;
    this.#trap = trap;
  }

  static async make(): Promise<NetWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'fcs-net-'));
    await writeFile(join(folder, 'resolv.conf'), `nameserver ${NAME_SERVER}\noptions timeout:5 attempts:2\n`, { mode: 0o644 });
    await writeFile(join(folder, 'nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n', { mode: 0o644 });
    const unshare = ['unshare', '--net', '--mount', '--propagation', 'private'];
    const isolate = `mount --bind ${folder}/resolv.conf /etc/resolv.conf && mount --bind ${folder}/nsswitch.conf /etc/nsswitch.conf`;
    const hold = 'ip link set lo up && echo ready && exec cat';
    const host = await Program.start([...unshare, 'sh', '-c', `${isolate} && ${hold}`]);
    // The addresses are there before the programs that listen on them.
    const around = await Program.start([...unshare, 'sh', '-c', hold]);
    try {
      connect(host.pid, around.pid);
      const outside = await Program.start([...enter(around.pid), process.execPath, join(PROGRAMS, 'outside.ts')]);
      around.stop();
      const trap = await Program.start([...enter(host.pid), process.execPath, join(PROGRAMS, 'trap.ts')]);
      return new NetWorld(folder, host, outside, trap);
    } catch (error) {
      around.stop();
      host.stop();
      throw error;
    }
  }

  /** What a command begins with that is to run on the host of this world. */
  get prefix(): readonly string[] {
    return enter(this.#host.pid);
  }

  async outsideCounts(): Promise<OutsideCounts> {
    return JSON.parse(await this.#outside.ask()) as OutsideCounts;
  }

  async trapCounts(): Promise<TrapCounts> {
    return JSON.parse(await this.#trap.ask()) as TrapCounts;
  }

  /** Packets that left for any address but those of the upstream and the name server. */
  packetsElsewhere(): number {
    const [, packets] = /^ *elsewhere: *\d+ +(\d+)/m.exec(readFileSync(`/proc/${this.#outside.pid}/net/dev`, 'utf8')) ?? [];
    if (packets === undefined) throw new Error('the network around the host is gone');
    return Number(packets);
  }

  async stop(): Promise<void> {
    for (const program of [this.#trap, this.#outside, this.#host]) program.stop();
    for (const program of [this.#trap, this.#outside, this.#host]) await program.ended;
    await rm(this.#folder, { recursive: true, force: true });
  }
}

const enter = (pid: number): readonly string[] => ['nsenter', `--net=/proc/${pid}/ns/net`, `--mount=/proc/${pid}/ns/mnt`];

function run([command = '', ...args]: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Lays both cards. Neighbours are written down, so that nothing but packets for somebody leaves. */
function connect(host: number, outside: number): void {
  const script = (pid: number, lines: readonly string[]) => run([...enter(pid), 'sh', '-ec', lines.join('\n')]);
  script(outside, [
    'sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.addr_gen_mode=1',
    `ip link add named type veth peer name named netns ${host}`,
    `ip link add elsewhere address ${GATEWAY_MAC} type veth peer name elsewhere netns ${host}`,
    ...[...UPSTREAMS, NAME_SERVER].map((address) => `ip address add ${address}/24 dev named`),
    'ip link set named up',
    'ip link set elsewhere up',
  ]);
  script(host, [
    'for card in named elsewhere; do echo 1 > /proc/sys/net/ipv6/conf/$card/addr_gen_mode; done',
    `ip address add ${OWN_ADDRESS}/24 dev named`,
    'ip -6 address add 2606:2800:220:1::1/64 dev named nodad',
    'ip link set named up',
    'ip link set elsewhere up',
    `ip neighbour add ${ELSEWHERE} lladdr ${GATEWAY_MAC} dev elsewhere nud permanent`,
    `ip -6 neighbour add fe80::1 lladdr ${GATEWAY_MAC} dev elsewhere nud permanent`,
    `ip route add default via ${ELSEWHERE} dev elsewhere onlink`,
    'ip -6 route add default via fe80::1 dev elsewhere onlink',
  ]);
}

/** A process that says `ready`, answers lines with lines, and ends with its input. */
class Program {
  readonly pid: number;
  readonly ended: Promise<unknown>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.ended = once(child, 'exit');
    this.#lines = createInterface({ input: child.stdout });
  }

  static async start([command = '', ...args]: readonly string[]): Promise<Program> {
    const program = new Program(spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] }));
    const first = await Promise.race([program.#nextLine(), program.ended]);
    if (first !== 'ready') throw new Error(`${command} ${args.join(' ')} did not become ready`);
    return program;
  }

  async ask(): Promise<string> {
    const line = this.#nextLine();
    this.#child.stdin.write('\n');
    return await line;
  }

  stop(): void {
    this.#child.stdin.end();
  }

  async #nextLine(): Promise<string> {
    const [line] = (await once(this.#lines, 'line')) as [string];
    return line;
  }
}

import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { Installation } from '@firecrew/system-tests/installation';
import { makeRepository } from '@firecrew/system-tests/repository';
import { followExec, startExec, type Vm } from '@firecrew/vmm';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';
import { memoryFolder, withSandbox } from '../support/sandbox.ts';
import { median, quantile } from '../support/timing.ts';

const LINES = 8_000;
/** Lines of the start, when programs are still being read and compiled. */
const WARM_UP = 1_000;
/** Writes a line with the time of day, 1,000 times a second; a timer that comes late makes up for it. */
const WRITER = `
const from = performance.now(); let count = 0;
const timer = setInterval(() => {
  const due = Math.min(${LINES}, Math.floor(performance.now() - from));
  for (; count < due; count += 1) process.stdout.write('t ' + (performance.timeOrigin + performance.now()).toFixed(2) + '\\n');
  if (count === ${LINES}) clearInterval(timer);
}, 1);`;

const now = () => performance.timeOrigin + performance.now();

/** Collects how old each line is when it arrives. */
class Ages {
  readonly all: number[] = [];
  #held = '';

  take(text: string): void {
    const at = now();
    const lines = (this.#held + text).split('\n');
    this.#held = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('t ')) this.all.push(at - Number(line.slice(2)));
  }

  rows(name: string): BenchRow[] {
    if (this.all.length !== LINES) throw new Error(`${this.all.length} lines of ${LINES} arrived`);
    const ages = this.all.slice(WARM_UP);
    return [
      measured(`follow: ${name}, median`, median(ages), 'ms', { atMost: 15 }),
      measured(`follow: ${name}, 99 of 100`, quantile(ages, 0.99), 'ms', { atMost: 60 }),
    ];
  }
}

async function readAges(stream: Readable): Promise<Ages> {
  const ages = new Ages();
  for await (const part of stream) ages.take(String(part));
  return ages;
}

async function fromGuest(vm: Vm): Promise<BenchRow[]> {
  const session = await vm.session();
  const id = randomUUID();
  await startExec(session, { id, argv: ['node', '-e', WRITER], cwd: '/', timeoutMs: 60_000 });
  return (await readAges(await followExec(session, id, 0))).rows('guest to host');
}

async function throughServer(): Promise<BenchRow[]> {
  const installation = await Installation.start({ bubblewrap: 'auto' });
  try {
    const folder = join(installation.home, 'scratch', 'bench');
    await mkdir(folder, { recursive: true });
    const repository = await makeRepository(folder, { 'file.txt': 'x\n' });
    const mission = await installation.startMission({
      repository,
      agent: `echo done > file.txt\nexec node -e "${WRITER.replaceAll('\n', ' ').replaceAll('\\n', '\\\\n')}"`,
    });
    const ages = new Ages();
    for await (const chunk of installation.client.logs(mission.id)) ages.take(Buffer.from(chunk.data, 'base64').toString());
    await installation.ended(mission.id);
    return ages.rows('agent to SSE client');
  } finally {
    await installation.stop();
  }
}

/** The age of lines when they arrive, at 1,000 lines a second. */
export async function followSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  try {
    const near = await withSandbox(folder.path, (vm) => fromGuest(vm));
    const far = await throughServer().catch((error: unknown) => [
      notMeasured('follow: agent to SSE client', 'ms', error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)),
    ]);
    return [...near, ...far];
  } finally {
    await folder.remove();
  }
}

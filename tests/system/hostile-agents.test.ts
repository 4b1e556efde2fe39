import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { MissionEventBody, Outcome } from '@firecrew/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Installation, type MissionOrder } from './support/installation.ts';
import { processesOfAttempt } from './support/processes.ts';
import { fetchDelivery, git, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'lib/deep/a.txt': 'a\n' };
const LOG_BYTES = 256 * 1024;

/** What a mission left for a case to look at. */
interface Seen {
  readonly events: readonly MissionEventBody[];
  readonly log: Buffer;
  readonly folder: string;
  readonly commit: string;
  readonly detail: string;
}

/** What an agent does, and what must come of it. */
interface Deed {
  readonly what: string;
  readonly agent: string;
  readonly check?: string;
  /** Added to the repository. */
  readonly files?: Readonly<Record<string, string>>;
  readonly extra?: MissionOrder['extra'];
  readonly outcome: Outcome;
  /** Listing of the delivered tree, `mode path`; undefined where nothing is delivered. */
  readonly tree: readonly string[] | undefined;
  readonly verified?: boolean;
  readonly also?: (seen: Seen) => void | Promise<void>;
  /** Also tried without isolation, where other means find its processes, its folder and its files; the rest is the same code in both. */
  readonly unisolated?: true;
}

const BASE = ['100644 add.js', '100644 lib/deep/a.txt'];
const COMPLETED: Outcome = { kind: 'completed' };

const DEEDS: readonly Deed[] = [
  {
    what: 'forks and detaches',
    unisolated: true,
    agent: `setsid sh -c 'while :; do sleep 1; done' & setsid nohup sleep 1000 >/dev/null 2>&1 &
      (setsid sh -c 'trap "" TERM HUP; (while :; do sleep 1; done) & exec sleep 1000' &) ; echo x > done.txt`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 done.txt'],
  },
  {
    what: 'ignores every signal until its time is up',
    unisolated: true,
    agent: `trap '' TERM INT HUP; echo half > half.txt; while :; do sleep 1; done`,
    check: 'true',
    extra: { turnTimeoutMs: 2_500 },
    outcome: { kind: 'timed_out' },
    tree: [...BASE, '100644 half.txt'],
    verified: false,
  },
  {
    what: 'prints 100 MB without an end of line',
    agent: `head -c 100000000 /dev/zero | tr '\\0' x; echo x > done.txt`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 done.txt'],
    also: ({ events, log }) => {
      expect(log.length).toBe(LOG_BYTES);
      expect(notices(events)).toContain('log_cut');
    },
  },
  { what: 'exits at once', agent: 'exit 0', outcome: { kind: 'gate_capped' }, tree: undefined },
  { what: 'fails at once', agent: 'exit 7', check: 'true', outcome: { kind: 'gate_capped' }, tree: undefined },
  {
    what: 'is a command that is missing',
    unisolated: true,
    agent: 'exec no-such-program --now',
    outcome: { kind: 'gate_capped' },
    tree: undefined,
    also: ({ events, log }) => {
      expect(log.toString()).toMatch(/no-such-program/);
      expect(agentExits(events)).toEqual([127, 127, 127]);
    },
  },
  {
    what: 'writes nothing but what the repository ignores',
    files: { '.gitignore': 'out/\n' },
    agent: 'mkdir -p out; echo x >> out/x.js; cat "$FIRECREW_FEEDBACK_FILE"; true',
    check: 'test -e out/x.js',
    outcome: { kind: 'gate_capped' },
    tree: undefined,
    also: ({ events, log }) => {
      expect(verdicts(events)).toEqual(['ignored_only', 'ignored_only', 'ignored_only']);
      expect(log.toString()).toMatch(/Only ignored files were changed/);
    },
  },
  {
    what: 'leaves what is not ignored when it is sent back',
    files: { '.gitignore': 'out/\n' },
    agent: 'mkdir -p out; echo x >> out/x.js; test "$FIRECREW_ROUND" = 1 || echo x > done.txt',
    outcome: COMPLETED,
    tree: ['100644 .gitignore', ...BASE, '100644 done.txt'],
    also: ({ events }) => expect(verdicts(events)).toEqual(['ignored_only', 'changed']),
  },
  {
    what: 'kills its own parents',
    unisolated: true,
    agent: 'echo x > done.txt; kill -9 $PPID; kill -9 $$',
    outcome: { kind: 'lost', reason: 'guest_lost' },
    tree: [...BASE, '100644 done.txt'],
    verified: false,
  },
  {
    what: 'removes everything in the workspace',
    agent: 'rm -rf -- ./* ./.[!.]* ./..?* 2>/dev/null; true',
    outcome: COMPLETED,
    tree: [],
  },
  {
    what: 'removes everything, and the check notices',
    agent: 'rm -rf -- ./* ./.[!.]*; true',
    check: 'test -e add.js',
    outcome: { kind: 'gate_capped' },
    tree: [],
    verified: false,
  },
  {
    what: 'removes the workspace itself',
    unisolated: true,
    agent: 'w="$PWD"; cd /; rm -rf "$w"; true',
    outcome: { kind: 'uncollected' },
    tree: undefined,
  },
  {
    what: 'puts a link in the place of the workspace',
    unisolated: true,
    agent: 'w="$PWD"; cd /; rm -rf "$w"; ln -s /etc "$w"; true',
    outcome: { kind: 'uncollected' },
    tree: undefined,
  },
  {
    what: 'writes git configuration, hooks and commits',
    agent: `git config user.name x; git config user.email x@x; echo x > committed.txt; git add committed.txt; git commit -qm mine
      mkdir hooks; for h in pre-commit post-checkout; do printf '#!/bin/sh\\ntouch planted\\n' > hooks/$h; chmod +x hooks/$h; cp hooks/$h .git/hooks/; done
      printf '[core]\\n fsmonitor = touch planted\\n hooksPath = hooks\\n' >> .git/config; echo y > done.txt`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 committed.txt', '100644 done.txt', '100755 hooks/post-checkout', '100755 hooks/pre-commit'],
  },
  {
    what: 'rewrites history and puts another repository in its place',
    agent: `git config user.name x; git config user.email x@x; git checkout -q --orphan other; git commit -qm other; git branch -D main
      git reflog expire --all --expire=now; git gc -q --prune=now; rm -rf .git; git init -q; git commit -q --allow-empty -m new; echo x > done.txt`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 done.txt'],
    also: async ({ folder, commit }) => expect(await git(folder, 'rev-parse', `${commit}^`)).toBe(await git(folder, 'rev-parse', 'main')),
  },
  {
    what: 'sets odd modes',
    unisolated: true,
    agent: `echo x > done.txt; chmod 4755 add.js; chmod 0222 done.txt; chmod 2711 lib; chmod 1777 lib/deep; chmod 6644 lib/deep/a.txt`,
    outcome: COMPLETED,
    tree: ['100644 done.txt', '100644 lib/deep/a.txt', '100755 add.js'],
  },
  {
    what: 'leaves links that lead out of the tree',
    unisolated: true,
    agent: `ln -s /etc/passwd secret; ln -s ../../../.. up; ln -s loop loop; rm -rf lib; ln -s /etc lib; ln add.js hard.js`,
    outcome: COMPLETED,
    tree: ['100644 add.js', '100644 hard.js', '120000 lib', '120000 loop', '120000 secret', '120000 up'],
    also: async ({ folder, commit }) => {
      expect(await git(folder, 'show', `${commit}:secret`)).toBe('/etc/passwd');
      expect(await git(folder, 'show', `${commit}:lib`)).toBe('/etc');
    },
  },
  {
    what: 'leaves a FIFO and a socket',
    unisolated: true,
    agent: `mkfifo pipe; node -e 'require("net").createServer().listen("sock", () => process.kill(process.pid, "SIGKILL"))'; echo x > done.txt`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 done.txt'],
    also: ({ events }) => {
      const skipped = events.flatMap((event) =>
        event.kind === 'turn.event' && event.body.kind === 'collected' ? event.body.tree.skipped : [],
      );
      expect(skipped).toEqual(expect.arrayContaining([expect.stringMatching(/^pipe /), expect.stringMatching(/^sock /)]));
    },
  },
  {
    what: 'closes folders and files to itself',
    unisolated: true,
    agent: `mkdir -p closed/inner; echo x > closed/inner/f; echo x > shut.txt; chmod 0000 shut.txt add.js closed/inner closed; chmod 0500 lib`,
    outcome: COMPLETED,
    tree: [...BASE, '100644 closed/inner/f', '100644 shut.txt'],
  },
  {
    what: 'nests folders deeper than can be collected',
    agent: `i=0; while [ $i -lt 300 ]; do mkdir d && cd d; i=$((i+1)); done; echo x > bottom.txt`,
    outcome: { kind: 'uncollected' },
    tree: undefined,
    also: ({ events }) => expect(JSON.stringify(events.at(-1))).toMatch(/too_deep/),
  },
  {
    what: 'speaks in terminal escapes and uses odd names',
    agent: `printf '\\033]0;owned\\007\\033[2J\\r\\n'; echo x > "$(printf 'a\\nb')"; echo x > -rf; echo x > 'q"uote'; echo x > 'back\\slash'
      echo x > "$(printf 'esc\\033[31m')"; mkdir .GIT 'git~1'; echo x > .GIT/config; echo x > 'git~1/config'; echo x > "$(printf 'latin\\351')"`,
    outcome: COMPLETED,
    tree: ['100644 -rf', ...BASE, '100644 a\nb', '100644 back\\slash', '100644 esc\u001b[31m', '100644 latin\ufffd', '100644 q"uote'],
  },
  {
    what: 'has a check that hangs',
    unisolated: true,
    agent: 'echo "$FIRECREW_ROUND" >> rounds.txt',
    check: `setsid sleep 1000 & while :; do sleep 1; done`,
    extra: { checkTimeoutMs: 1_000 },
    outcome: { kind: 'gate_capped' },
    tree: [...BASE, '100644 rounds.txt'],
    verified: false,
    also: ({ events }) => {
      expect(checks(events)).toEqual([true, true, true]);
      expect(verdicts(events)).toEqual(['check_timed_out', 'check_timed_out', 'check_timed_out']);
    },
  },
  {
    what: 'has a check that does not exist',
    agent: 'echo "$FIRECREW_ROUND" >> rounds.txt',
    check: './no-such-check --all',
    outcome: { kind: 'gate_unrunnable' },
    tree: [...BASE, '100644 rounds.txt'],
    verified: false,
    also: ({ events, detail }) => {
      expect(verdicts(events)).toEqual(['check_failed', 'check_unrunnable']);
      expect(detail).toMatch(/exit status 127[\s\S]*no-such-check/);
    },
  },
  {
    what: 'writes the check that did not exist when it is sent back',
    agent: `test "$FIRECREW_ROUND" = 1 || { printf '#!/bin/sh\ntest -e add.js\n' > new-check; chmod +x new-check; }; echo x >> rounds.txt`,
    check: './new-check --all',
    outcome: COMPLETED,
    tree: [...BASE, '100755 new-check', '100644 rounds.txt'],
    also: ({ events }) => expect(verdicts(events)).toEqual(['check_failed', 'check_passed']),
  },
];

describe.each(['auto', 'off'] as const)('with bubblewrap %s, an agent that', (bubblewrap) => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await Installation.start({ bubblewrap, limits: { logBytes: LOG_BYTES } });
  });
  afterAll(async () => await installation.stop());
  afterEach(async () => {
    await until('a node without leftovers', async () => (await installation.leftovers()).length === 0);
  });

  it.each(DEEDS.filter(({ unisolated }) => bubblewrap === 'auto' || unisolated))(
    '$what',
    async ({ agent, check, files, extra, outcome, tree, verified, also }) => {
      const folder = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), { ...FILES, ...files });
      const { id } = await installation.startMission({
        repository: folder,
        agent,
        ...(check === undefined ? {} : { check }),
        ...(extra === undefined ? {} : { extra }),
      });
      const { end } = await installation.ended(id);
      expect(end.outcome, end.detail).toEqual(outcome);
      expect(end.missionState).toBe(outcome.kind === 'completed' ? 'completed' : 'failed');
      let commit = '';
      if (tree === undefined) expect(end.delivery?.commit ?? null).toBeNull();
      else {
        commit = (await fetchDelivery(installation.client, id, folder, join(folder, '.git', 'delivery.pack'))).commit;
        expect(await listing(folder, commit)).toEqual([...tree].sort());
        // Work that nothing was to check has its own name, and is not called verified.
        expect(end.delivery?.branch?.endsWith('-wip')).toBe(outcome.kind !== 'completed');
        expect(end.delivery?.verified).toBe(verified ?? (outcome.kind === 'completed' && check !== undefined));
      }
      await also?.({ events: await installation.events(id), log: await installation.log(id, 1), folder, commit, detail: end.detail });
      const { marker } = await installation.attempt(id);
      await until('no process of the attempt', () => processesOfAttempt(marker).length === 0);
    },
  );
});

async function listing(folder: string, commit: string): Promise<string[]> {
  const text = await git(folder, 'ls-tree', '-r', '-z', commit);
  return text
    .split('\0')
    .filter((line) => line !== '')
    .map((line) => `${line.slice(0, 6)} ${line.slice(line.indexOf('\t') + 1)}`)
    .sort();
}

function bodies(events: readonly MissionEventBody[]) {
  return events.flatMap((event) => (event.kind === 'turn.event' ? [event.body] : []));
}

function notices(events: readonly MissionEventBody[]): string[] {
  return bodies(events).flatMap((body) => (body.kind === 'notice' ? [body.code] : []));
}

function agentExits(events: readonly MissionEventBody[]): (number | null)[] {
  return bodies(events).flatMap((body) => (body.kind === 'agent.ended' ? [body.exitCode] : []));
}

/** Whether each check ran out of time. */
function checks(events: readonly MissionEventBody[]): boolean[] {
  return bodies(events).flatMap((body) => (body.kind === 'check.ended' ? [body.timedOut] : []));
}

/** Reasons of the gate, round by round. */
function verdicts(events: readonly MissionEventBody[]): string[] {
  return bodies(events).flatMap((body) => (body.kind === 'gate' ? [body.reason] : []));
}

import { type MissionEvent, missionEventSchema } from '@firecrew/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { freeName } from '../src/commands/artifacts.ts';
import { cleanLine, cleanLines, LINE_MAX_CHARS } from '../src/render/clean-text.ts';
import { HELD_MAX_CHARS, LogLines } from '../src/render/log-lines.ts';
import { wantsColour } from '../src/render/output.ts';
import { renderEvent, seconds } from '../src/render/render-event.ts';
import { renderSummary } from '../src/render/render-summary.ts';
import { statusLine } from '../src/render/run-screen.ts';
import { displayWidth, renderTable } from '../src/render/table.ts';
import { endOfRun, learn, newFacts } from '../src/run/run-facts.ts';

const AT = '2030-01-01T00:00:00.000Z';
const TURN = { phaseId: 'phs_0000000000000000', turnId: 'trn_0000000000000000', attempt: 1 };
const event = (body: unknown): MissionEvent => missionEventSchema.parse({ seq: 1, at: AT, body });
const turnEvent = (body: unknown): MissionEvent => event({ kind: 'turn.event', ...TURN, seq: 1, body });
const text = (one: MissionEvent): string[] => renderEvent(one).map((line) => line.text);
const LINE = {
  connection: 1,
  purpose: 'agent',
  address: null,
  verdict: 'deny',
  rule: null,
  bytesIn: null,
  bytesOut: null,
  lookupMs: null,
  connectMs: null,
  durationMs: null,
};

/** [what happened, its event, the lines] */
const EVENTS: readonly (readonly [string, MissionEvent, readonly string[]])[] = [
  [
    'a wait',
    event({ kind: 'turn.waiting', ...TURN, reason: 'fleet_full', detail: '2 nodes are full' }),
    ['waiting: fleet full: 2 nodes are full'],
  ],
  ['a placement', event({ kind: 'turn.placed', ...TURN, nodeId: 'nod_0000000000000000', node: 'local' }), ['placed on node local']],
  ['the agent at work', turnEvent({ kind: 'step', step: 'agent', round: 2, purpose: 'agent' }), ['agent works, round 2']],
  [
    'no isolation',
    turnEvent({ kind: 'attempt.started', isolation: 'none', detail: 'no bwrap' }),
    ['nothing isolates this run from the host (install bubblewrap): no bwrap'],
  ],
  [
    'a check that passed',
    turnEvent({
      kind: 'check.ended',
      round: 1,
      status: 'passed',
      exitCode: 0,
      signal: null,
      timedOut: false,
      durationMs: 1234,
      outputTail: '',
    }),
    ['check passed after 1.2 s'],
  ],
  [
    'a check that failed',
    turnEvent({
      kind: 'check.ended',
      round: 1,
      status: 'failed',
      exitCode: 1,
      signal: null,
      timedOut: false,
      durationMs: 9,
      outputTail: 'one\n\u001b[2Jtwo\n',
    }),
    ['check failed: exited with 1', '  one', '  two'],
  ],
  [
    'a check without output',
    turnEvent({
      kind: 'check.ended',
      round: 1,
      status: 'failed',
      exitCode: 1,
      signal: null,
      timedOut: false,
      durationMs: 9,
      outputTail: '\n',
    }),
    ['check failed: exited with 1'],
  ],
  [
    'a denial',
    turnEvent({ kind: 'egress', line: { ...LINE, event: 'refused', host: 'evil.example', port: 443, reason: 'not_allowed' } }),
    ['denied: evil.example:443 for the agent (not allowed)'],
  ],
  [
    'a tunnel that a budget cut',
    turnEvent({ kind: 'egress', line: { ...LINE, event: 'end', host: 'files.example', port: 443, reason: 'host_bytes_spent' } }),
    ['cut: files.example:443 for the agent (its budget of bytes is used up)'],
  ],
  [
    'a tunnel that ended by itself',
    turnEvent({ kind: 'egress', line: { ...LINE, event: 'end', host: 'files.example', port: 443, reason: 'guest_closed' } }),
    [],
  ],
  ['an allowed connection', turnEvent({ kind: 'egress', line: { ...LINE, event: 'open', host: 'a', port: 443, reason: 'ok' } }), []],
  [
    'an attempt that failed',
    event({ kind: 'turn.ended', ...TURN, outcome: { kind: 'lost', reason: 'node_lost' }, detail: '', retrying: true }),
    ['attempt 1 ended: it was lost (node_lost); another is made'],
  ],
  ['an attempt that completed', event({ kind: 'turn.ended', ...TURN, outcome: { kind: 'completed' }, detail: '', retrying: false }), []],
];

describe('an event', () => {
  it.each(EVENTS)('is told: %s', (_what, one, lines) => {
    expect(text(one)).toEqual(lines);
  });

  it('never brings a control character to the terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (hostile) => {
        const lines = [
          ...text(turnEvent({ kind: 'notice', level: 'warning', code: hostile, message: hostile })),
          ...text(
            turnEvent({
              kind: 'check.ended',
              round: 1,
              status: 'failed',
              exitCode: 1,
              signal: hostile,
              timedOut: false,
              durationMs: 1,
              outputTail: hostile,
            }),
          ),
          ...text(
            turnEvent({
              kind: 'egress',
              line: { ...LINE, event: 'refused', host: hostile.slice(0, 100), port: 1, reason: hostile.slice(0, 100) },
            }),
          ),
        ];
        for (const line of lines) expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2066]/);
      }),
    );
  });
});

describe('text from elsewhere', () => {
  it.each([
    ['\u001b[31mred\u001b[0m', 'red'],
    ['\u001b]0;title\u0007x', 'x'],
    ['\u001b]8;;https://evil\u001b\\link\u001b]8;;\u001b\\', 'link'],
    ['a\rb\nc\td', 'a b c d'],
    ['\u202egnp.exe', 'gnp.exe'],
    ['\u009b31mx', '31mx'],
    ['ä€😀', 'ä€😀'],
    ['x'.repeat(LINE_MAX_CHARS), 'x'.repeat(LINE_MAX_CHARS)],
    ['x'.repeat(LINE_MAX_CHARS + 1), `${'x'.repeat(LINE_MAX_CHARS)}…`],
  ])('is shown without control: %j', (raw, shown) => {
    expect(cleanLine(raw)).toBe(shown);
  });

  it('keeps the last lines and counts the others', () => {
    expect(cleanLines('a\nb\nc\nd\n', 2)).toEqual(['… 2 lines before', 'c', 'd']);
    expect(cleanLines('a\nb', 2)).toEqual(['a', 'b']);
    expect(cleanLines('10%\r50%\r100%\r\n', 2)).toEqual(['100%']);
  });
});

describe('output of an agent', () => {
  it('is whole lines wherever it was cut', () => {
    const whole = Buffer.from('first ä€😀\nsecond\r\nthird');
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 8 }), (cuts) => {
        const lines = new LogLines();
        const edges = [0, ...[...cuts].sort((a, b) => a - b), whole.length];
        const shown = edges.slice(1).flatMap((end, index) => lines.push(whole.subarray(edges[index] ?? 0, end)));
        expect([...shown, ...lines.end()]).toEqual(['first ä€😀', 'second', 'third']);
      }),
    );
  });

  it('without a line end is not held back without bound', () => {
    const lines = new LogLines();
    expect(lines.push(Buffer.from('x'.repeat(HELD_MAX_CHARS)))).toEqual([]);
    expect(lines.push(Buffer.from('y'))).toHaveLength(1);
    expect(lines.end()).toEqual([]);
  });
});

describe('a table', () => {
  it('has columns as wide as their widest cell and no blanks at the end', () => {
    expect(
      renderTable(
        ['a', 'long head'],
        [
          ['wide cell', 'x'],
          ['', ''],
        ],
      ),
    ).toEqual(['a          long head', 'wide cell  x', '']);
  });
  it.each([
    ['abc', 3],
    ['漢字', 4],
    ['é', 1],
    ['😀', 2],
  ])('knows the width of %s', (cell, width) => {
    expect(displayWidth(cell)).toBe(width);
  });
});

describe('colours', () => {
  it.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
  ])('on a terminal %s with %j: %s', (isTerminal, env, wanted) => {
    expect(wantsColour(isTerminal, env)).toBe(wanted);
  });
});

it('keeps the status line narrower than the terminal', () => {
  for (const columns of [10, 20, 80])
    expect(displayWidth(statusLine('⠋', '漢'.repeat(100), 1_000, columns))).toBeLessThan(Math.max(columns, 10));
});

it.each([
  [0, '0.0 s'],
  [9_949, '9.9 s'],
  [59_400, '59 s'],
  [61_000, '1 min 1 s'],
])('tells %d ms as %s', (ms, said) => {
  expect(seconds(ms)).toBe(said);
});

it.each([
  ['changes.patch', 'changes.patch'],
  ['../../etc/passwd', 'passwd'],
  ['a\\b', 'b'],
  ['..', 'art_1'],
  ['.bashrc', 'bashrc'],
  ['-rf', 'rf'],
  ['a b\u001b', 'a_b_'],
  ['taken', 'art_1-taken'],
])('saves the artifact %j as %j', (name, file) => {
  expect(freeName({ id: 'art_1', name }, (one) => one === 'taken')).toBe(file);
});

describe('the end of a run', () => {
  const delivery = {
    phaseId: TURN.phaseId,
    attempt: 1,
    state: 'delivered',
    branch: 'firecrew/x',
    commit: 'a'.repeat(40),
    baseCommit: 'b'.repeat(40),
    verified: true,
    pushed: 'not_wanted',
    pushDetail: '',
    diffstat: { files: 1, insertions: 2, deletions: 3 },
    diffError: null,
    protectedPaths: [],
    leftOut: [{ path: 'out.log', reason: 'ignored' }],
    unfiltered: [{ path: 'a.bin', filter: 'lfs' }],
    checkInputsChanged: ['test/a.test.js'],
  };
  const end = {
    missionState: 'completed',
    outcome: { kind: 'completed' },
    exitCode: 0,
    detail: '',
    delivery,
    denied: [{ host: 'evil', port: 443, reason: 'not_allowed', connections: 3 }],
  };
  const tree = {
    snapshotId: 'a'.repeat(64),
    blobDigest: 'b'.repeat(64),
    bytes: 1,
    files: 1,
    round: 1,
    skipped: [],
    excluded: [{ path: 'dist', files: 2, bytes: 3, ignored: false }],
  };
  const facts = [
    turnEvent({ kind: 'attempt.started', isolation: 'bubblewrap', detail: '' }),
    turnEvent({ kind: 'collected', tree, changed: true }),
    event({ kind: 'delivery', delivery }),
    event({ kind: 'mission.ended', end }),
  ].reduce(learn, newFacts('msn_0000000000000000'));
  const back = { branch: 'firecrew/x', pushed: 'not_wanted', pushDetail: '' } as const;

  it('says branch, changes, verdict, isolation, and what to look at', () => {
    const lines = renderSummary(endOfRun(facts, back, null), { hasCheck: true, repository: '/r' }).map((line) => line.text);
    expect(lines).toEqual([
      'msn_0000000000000000 completed',
      'branch    firecrew/x in /r',
      `commit    ${'a'.repeat(40)}`,
      'changes   1 file, +2 -3',
      'verified  yes: the check passed in a fresh sandbox on exactly this tree',
      'isolation bubblewrap',
      'check_inputs_changed: the agent changed what the check runs: test/a.test.js',
      'denied    evil:443, 3 times (not allowed)',
      'left out though not ignored: dist (2 files)',
      'not in the commit: 1 path (1 ignored): out.log',
      'committed without its filter: 1 path (1 lfs): a.bin',
    ]);
  });

  it('names what every phase left out or committed without its filter, once, and nothing of a phase that is run again', () => {
    const first = { ...delivery, leftOut: [], unfiltered: [{ path: 'of-first.bin', filter: 'my_filter' }] };
    const second = { ...delivery, phaseId: 'phs_0000000000000001' };
    const told = [first, second, second].map((one) => event({ kind: 'delivery', delivery: one }));
    const end = endOfRun(told.reduce(learn, newFacts('msn_0000000000000000')), back, null);
    expect([end.leftOut, end.unfiltered]).toEqual([delivery.leftOut, [...first.unfiltered, ...delivery.unfiltered]]);
    expect(renderSummary({ ...end, isolation: null }, { hasCheck: true, repository: '/r' }).map((line) => line.text)).toContain(
      'committed without its filter: 2 paths (1 my_filter, 1 lfs): of-first.bin, a.bin',
    );
    const again = event({ kind: 'mission.retried', phaseId: second.phaseId, reopened: 0 });
    expect(endOfRun([...told, again].reduce(learn, newFacts('')), back, null).unfiltered).toEqual(first.unfiltered);
  });

  it('reads the delivery of an older server, which names no filters', () => {
    const { unfiltered: _, ...older } = delivery;
    const learnt = learn(newFacts(''), event({ kind: 'delivery', delivery: older }));
    expect(endOfRun(learnt, back, null).unfiltered).toEqual([]);
  });

  it('says why a delivery awaits approval, and that only files were changed that stay out of a commit', () => {
    const held = {
      ...delivery,
      state: 'awaiting_approval',
      pushed: 'awaiting_approval',
      pushDetail: 'the changed paths could not be listed: x',
    };
    const lineOf = (one: unknown) => renderEvent(event({ kind: 'delivery', delivery: one })).map((line) => line.text);
    expect(lineOf({ ...held, protectedPaths: ['.ci/a'] })).toEqual(['firecrew/x awaits approval: it changes .ci/a']);
    expect(lineOf(held)).toEqual(['firecrew/x awaits approval: the changed paths could not be listed: x']);
    const waiting = endOfRun(
      learn(newFacts(''), event({ kind: 'delivery', delivery: held })),
      { ...back, pushed: 'awaiting_approval' },
      null,
    );
    expect(renderSummary(waiting, { hasCheck: true, repository: '/r' }).map((line) => line.text)).toContainEqual(
      expect.stringMatching(/^pushed {4}no: its changes could not be listed; after a look: firecrew approve/),
    );
    const nothing = { ...delivery, state: 'nothing_to_deliver', commit: null, branch: null };
    expect(lineOf(nothing)).toEqual(['nothing to deliver: only files that stay out of a commit were changed']);
    expect(lineOf({ ...nothing, leftOut: [] })).toEqual(['nothing to deliver: no file was changed']);
  });

  it('counts what is not in the commit, and says what would isolate', () => {
    const leftOut = [...Array(12).keys()].map((at) => ({ path: `f${at}`, reason: at < 10 ? 'ignored' : 'not_for_git' }));
    const lines = renderSummary({ ...endOfRun(facts, back, null), leftOut, isolation: 'none' }, { hasCheck: true, repository: '/r' });
    expect(lines.filter((line) => line.tone === 'warn').map((line) => line.text)).toEqual(
      expect.arrayContaining([
        'isolation none: install bubblewrap to keep agents from your files, processes and network',
        'not in the commit: 12 paths (10 ignored, 2 not for git): f0, f1, f2, f3, f4, f5, f6, f7, f8, f9 and 2 more',
      ]),
    );
  });

  it('says in words that no host is allowed', () => {
    const denied = [{ host: 'a', port: 443, reason: 'empty_list', connections: 1 }];
    const lines = renderSummary({ ...endOfRun(facts, back, null), denied }, { hasCheck: true, repository: '/r' });
    expect(lines.map((line) => line.text)).toContain('denied    a:443, 1 times (no host is allowed)');
  });

  it('claims no check where none was given', () => {
    const lines = renderSummary(endOfRun(facts, back, null), { hasCheck: false, repository: '/r' });
    expect(lines.find((line) => line.text.startsWith('verified'))).toEqual({
      tone: 'warn',
      text: 'verified  no: no check was given (--check)',
    });
  });

  it('says how to push what could not be pushed', () => {
    const end = endOfRun(facts, { ...back, pushed: 'failed', pushDetail: 'remote_rejected: closed' }, null);
    const lineOf = (repository: string | undefined) =>
      renderSummary(end, { hasCheck: true, repository }).find((line) => line.text.startsWith('pushed'))?.text;
    expect(lineOf('/r')).toBe('pushed    no: remote_rejected: closed; again with: firecrew fetch msn_0000000000000000 --push REMOTE');
    expect(lineOf(undefined)).toBe('pushed    no: remote_rejected: closed');
  });

  it('is a failure when the push failed or the branch could not be written', () => {
    expect(endOfRun(facts, { ...back, pushed: 'failed' }, null).exitCode).toBe(1);
    expect(endOfRun(facts, back, { code: 'x', message: 'y' }).exitCode).toBe(1);
    expect(endOfRun(facts, { ...back, pushed: 'awaiting_approval' }, null).exitCode).toBe(0);
  });

  it('keeps the exit code of the mission where that is worse', () => {
    const failed = learn(facts, event({ kind: 'mission.ended', end: { ...end, missionState: 'cancelled', exitCode: 3 } }));
    expect(endOfRun(failed, { ...back, pushed: 'failed' }, null).exitCode).toBe(3);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatchRequest, type BatchTurn, judgeSeat, planBatch, type SeatRoom } from '../src/index.ts';
import { NOW, node } from './fleet.ts';

const room = (over: Partial<SeatRoom> = {}): SeatRoom => ({ id: 's', role: 'coder', maxTurns: 2, held: 0, ...over });
const turn = (vmId: string, seatId?: string): BatchTurn => ({
  vmId,
  demand: {},
  backends: [],
  driverFloor: 'qemu',
  ...(seatId === undefined ? {} : { seatId }),
});

describe('a seat', () => {
  it.each<[string, SeatRoom | undefined, boolean]>([
    ['with nothing held has room', room(), true],
    ['with one lease left has room', room({ held: 1 }), true],
    ['with none left has none', room({ held: 2 }), false],
    ['that was narrowed below what it holds has none', room({ maxTurns: 1, held: 2 }), false],
    ['that is not known has none', undefined, false],
  ])('%s', (_what, seat, free) => {
    expect(judgeSeat('s', seat).verdict === 'free').toBe(free);
  });

  it('says which role is busy, with its numbers, and does not speak of a full fleet', () => {
    const busy = judgeSeat('s', room({ held: 2 }));
    expect(busy).toMatchObject({ verdict: 'seat_busy', transient: true });
    expect(busy).toHaveProperty('message', expect.stringContaining('role coder allows 2 at once, and 2 turns run'));
    expect(JSON.stringify(busy)).not.toContain('capacity');
  });
});

describe('a batch with seats', () => {
  it('gives each lease once, and passes over a busy seat to the turns behind it', () => {
    const turns = [turn('1', 's'), turn('2', 's'), turn('3', 's'), turn('4'), turn('5', 'gone')];
    const placed = planBatch({ turns, nodes: [node()], nowMs: NOW, seats: [room()] });
    expect(placed.map((each) => each.placement.verdict)).toEqual(['chosen', 'chosen', 'seat_busy', 'chosen', 'seat_busy']);
  });

  it('takes no lease for a turn that no node has room for', () => {
    const small = node({ id: 'small', health: { memoryTotalMib: 1024, memoryUsedMib: 0 } });
    const full = planBatch({ turns: [turn('1', 's')], nodes: [small], nowMs: NOW, seats: [room({ maxTurns: 1 })] });
    expect(full[0]?.placement.verdict).not.toBe('chosen');
    expect(full[0]?.placement.verdict).not.toBe('seat_busy');
  });
});

type Planner = (request: BatchRequest) => ReturnType<typeof planBatch>;
type Step =
  | { readonly do: 'create'; readonly seat: number }
  | { readonly do: 'place' | 'restart' }
  | { readonly do: 'end' | 'lose'; readonly at: number }
  | { readonly do: 'allow'; readonly seat: number; readonly maxTurns: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('create' as const), seat: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('place' as const, 'restart' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'lose' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('allow' as const), seat: fc.nat(2), maxTurns: fc.integer({ min: 1, max: 4 }) }) },
);

const someSteps = fc.array(step, { maxLength: 60, size: 'max' });

/** Steps a world of three seats. Throws where a placement brings a seat above what it allows. */
function play(plan: Planner, steps: readonly Step[]): { placed: number; busy: number } {
  const allowed = [1, 2, 3];
  let waiting: { id: string; seat: number; attempt: number }[] = [];
  let running: { id: string; seat: number; attempt: number }[] = [];
  const seen = { placed: 0, busy: 0 };
  let made = 0;
  for (const now of steps) {
    if (now.do === 'create') waiting.push({ id: `t${made++}`, seat: now.seat, attempt: 1 });
    if (now.do === 'allow') allowed[now.seat] = now.maxTurns;
    if (now.do === 'end' || now.do === 'lose') {
      const [gone] = running.splice(now.at % Math.max(1, running.length), 1);
      // A lost attempt gives its lease back, and its turn asks for one again.
      if (gone !== undefined && now.do === 'lose') waiting.push({ ...gone, attempt: gone.attempt + 1 });
    }
    if (now.do !== 'place' && now.do !== 'restart') continue;
    // A restarted server knows what is stored and nothing else: leases are counted from attempts that have not ended, each time.
    const seats = allowed.map((maxTurns, at) => room({ id: `s${at}`, maxTurns, held: running.filter((each) => each.seat === at).length }));
    const turns = waiting.map((each) => turn(`${each.id}.${each.attempt}`, `s${each.seat}`));
    const answers = plan({ turns, nodes: [node({ health: { memoryTotalMib: 4_000_000, diskFreeMib: 400_000_000 } })], nowMs: NOW, seats });
    const chosen = waiting.filter((_, at) => answers[at]?.placement.verdict === 'chosen');
    seen.placed += chosen.length;
    seen.busy += answers.filter((each) => each.placement.verdict === 'seat_busy').length;
    for (const [at, max] of allowed.entries()) {
      const before = running.filter((each) => each.seat === at).length;
      const added = chosen.filter((each) => each.seat === at).length;
      if (added > 0 && before + added > max) throw new Error(`seat ${at}: ${before + added} of ${max}`);
      const wanted = waiting.filter((each) => each.seat === at).length;
      if (added < Math.min(wanted, Math.max(0, max - before))) throw new Error(`seat ${at}: a free lease was not given`);
    }
    waiting = waiting.filter((each) => !chosen.includes(each));
    running = [...running, ...chosen];
  }
  return seen;
}

describe('leases of seats', () => {
  it('are never more than a seat allows, and none is kept back, under any steps, retries and restarts', () => {
    const total = { placed: 0, busy: 0 };
    fc.assert(
      fc.property(someSteps, (steps) => {
        const { placed, busy } = play(planBatch, steps);
        total.placed += placed;
        total.busy += busy;
      }),
      { numRuns: 300 },
    );
    expect(total.placed).toBeGreaterThan(500);
    expect(total.busy).toBeGreaterThan(500);
  });

  it('are seen to be exceeded where a planner forgets what it gave in the same batch', () => {
    const forgetful: Planner = (request) => request.turns.flatMap((each) => planBatch({ ...request, turns: [each] }));
    const details = fc.check(
      fc.property(someSteps, (steps) => void play(forgetful, steps)),
      { numRuns: 300 },
    );
    expect(String(details.errorInstance)).toMatch(/seat \d: \d of \d/);
  });
});

import {
  MAX_SEAT_BUDGET,
  MIN_SEAT_BUDGET,
  type SeatAttempt,
  type SeatBudgetChange,
  type SeatView,
  seatBudgetChangeSchema,
} from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';
import { renderTable } from '../render/table.ts';
import { BUDGET_FLAGS } from './budget-flags.ts';

type BudgetFlag = keyof typeof BUDGET_FLAGS;
/** Budgets as they were given on the command line. */
export type BudgetTexts = Readonly<Partial<Record<BudgetFlag, string>>>;

/** The change that flags ask for: `none` takes a bound away, what is left out stays. Undefined where nothing is asked. Throws `usage_wrong`. */
export function readBudget(texts: BudgetTexts): SeatBudgetChange | undefined {
  const found: Record<string, number | null> = {};
  for (const [name, [flag]] of Object.entries(BUDGET_FLAGS)) {
    const text = texts[name as BudgetFlag];
    if (text === undefined) continue;
    const value = text === 'none' ? null : /^\d{1,13}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
    if (!seatBudgetChangeSchema.safeParse({ [name]: value }).success) throw wrong(flag, text, name.endsWith('Tokens') ? 'tokens' : 'money');
    found[name] = value;
  }
  return Object.keys(found).length === 0 ? undefined : seatBudgetChangeSchema.parse(found);
}

function wrong(flag: string, text: string, unit: 'tokens' | 'money'): UsageError {
  const kind = unit === 'tokens' ? 'a whole number' : 'a number with at most 6 decimals';
  const range = `from ${MIN_SEAT_BUDGET[unit]} to ${MAX_SEAT_BUDGET[unit]}`;
  return new UsageError('usage_wrong', `${flag.split(' ')[0]} ${text.slice(0, 20)} is not ${kind} ${range}, or none`, {
    action: 'none takes the bound away; leave it out to keep what is set.',
  });
}

/** What a seat has used of what it may, in one line; empty where it is not bounded and has used nothing. */
export function renderUse({ budget, use }: Pick<SeatView, 'budget' | 'use'>): string {
  if (use === undefined) return '';
  const of = (used: number, cap: number | null | undefined, unit: string, when: string): string[] =>
    cap == null ? [] : [`${round(used)} of ${cap} ${unit} ${when}`];
  const bounded = [
    ...of(use.day.tokens, budget?.dayTokens, 'tokens', 'today'),
    ...of(use.total.tokens, budget?.totalTokens, 'tokens', 'in all'),
    ...of(use.day.money, budget?.dayMoney, 'in money', 'today'),
    ...of(use.total.money, budget?.totalMoney, 'in money', 'in all'),
  ];
  const held = [
    ...(use.held.tokens > 0 ? [`${use.held.tokens} tokens held`] : []),
    ...(use.held.money > 0 ? [`${round(use.held.money)} in money held`] : []),
  ];
  if (bounded.length > 0) return [...bounded, ...held].join(', ');
  return use.total.tokens === 0 && use.total.money === 0 ? '' : `${use.total.tokens} tokens, ${round(use.total.money)} in money`;
}

/** Attempts of a seat as a table. */
export function renderAttempts(attempts: readonly SeatAttempt[]): string[] {
  if (attempts.length === 0) return ['no turn has run under it yet'];
  const amount = (tokens: number | null, money: number | null): string =>
    [...(tokens === null ? [] : [`${tokens} tokens`]), ...(money === null ? [] : [`${round(money)} in money`])].join(', ');
  const rows = attempts.map(({ startedAt, missionId, turnId, attempt, state, outcome, grant, charge }) => [
    startedAt.slice(0, 16).replace('T', ' '),
    missionId,
    `${turnId}.${attempt}`,
    outcome ?? state,
    grant === null ? 'no budget' : amount(grant.tokens, grant.money),
    charge === null ? 'runs' : amount(charge.tokens, charge.money),
  ]);
  return renderTable(['started', 'mission', 'attempt', 'state', 'given', 'charged'], rows);
}

function round(money: number): string {
  return String(Math.round(money * 1e6) / 1e6);
}

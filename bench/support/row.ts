/** One measured number. */
export interface BenchRow {
  readonly name: string;
  /** `null` when it could not be measured; `note` then says why. */
  readonly value: number | null;
  readonly unit: string;
  /** What it should be, as a person writes it; `null` where it is only told. */
  readonly target: string | null;
  /** Whether the target is met; `null` without a target or a value. */
  readonly met: boolean | null;
  readonly note?: string;
}

/** How a value is held against a number. */
export type Target = { readonly atLeast: number } | { readonly atMost: number };

/** A row with a target; "at most" and "at least" include the number. */
export function measured(name: string, value: number, unit: string, target?: Target, note?: string): BenchRow {
  const extra = note === undefined ? {} : { note };
  if (target === undefined) return { name, value, unit, target: null, met: null, ...extra };
  if ('atLeast' in target) return { name, value, unit, target: `>= ${target.atLeast}`, met: value >= target.atLeast, ...extra };
  return { name, value, unit, target: `<= ${target.atMost}`, met: value <= target.atMost, ...extra };
}

/** A row of something that this machine could not show. */
export function notMeasured(name: string, unit: string, why: string): BenchRow {
  return { name, value: null, unit, target: null, met: null, note: why };
}

/** Measures a group of rows. */
export type Suite = () => Promise<BenchRow[]>;

const digits = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const verdict = (met: boolean | null) => (met === null ? '' : met ? 'met' : 'missed');

/** The table a person reads; Markdown, so that it can stand in a document. */
export function benchTable(rows: readonly BenchRow[]): string {
  const cells = rows.map(({ name, value, unit, target, met, note }) => [
    name,
    value === null ? 'not measured' : `${digits(value)} ${unit}`,
    target ?? '',
    verdict(met),
    note ?? '',
  ]);
  const all = [['what', 'value', 'target', '', 'note'], ...cells];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(3, ...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head, ...body] = all.map(line);
  return [head, line(widths.map((width) => '-'.repeat(width))), ...body].join('\n');
}

import { RouteConfigError } from '../config-error.ts';
import type { TokenUsage } from './token-usage.ts';

/** Prices of a model, in units of money for a million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  /** Default: as `input`. */
  readonly cacheRead?: number | undefined;
  /** Default: as `input`. */
  readonly cacheWrite?: number | undefined;
}

/** Prices by the exact name of a model. */
export type PriceTable = Readonly<Record<string, ModelPrice>>;

/** Models of one table. */
export const PRICED_MODELS_MAX = 1_000;
const PRICE_MAX = 1_000_000;

/** Reads a table `{"models": {NAME: {input, output, cacheRead?, cacheWrite?}}}`. Throws `price_table_invalid`. */
export function parsePriceTable(document: unknown): PriceTable {
  const models = recordOf(recordOf(document)?.models);
  const entries = Object.entries(models ?? {});
  if (models === undefined || entries.length === 0 || entries.length > PRICED_MODELS_MAX)
    throw new RouteConfigError('price_table_invalid', `a price table is {"models": {...}} with 1 to ${PRICED_MODELS_MAX} models`);
  return Object.fromEntries(entries.map(([name, value]) => [name, priceOf(name, value)]));
}

/** What a call cost, in millionths of a unit of money, rounded up. */
export function costOf({ input, output, cacheRead = input, cacheWrite = input }: ModelPrice, usage: TokenUsage): number {
  return Math.ceil(usage.input * input + usage.output * output + usage.cacheRead * cacheRead + usage.cacheWrite * cacheWrite);
}

/** What a call may cost at most: all of its input at the dearest price of input. */
export function highestCost(price: ModelPrice, inputTokens: number, outputTokens: number): number {
  const input = Math.max(price.input, price.cacheRead ?? 0, price.cacheWrite ?? 0);
  return Math.ceil(inputTokens * input + outputTokens * price.output);
}

function priceOf(name: string, value: unknown): ModelPrice {
  const price = recordOf(value) ?? {};
  const { input, output, cacheRead, cacheWrite, ...others } = price;
  if (!isPrice(input) || !isPrice(output) || !Object.values(price).every(isPrice) || Object.keys(others).length > 0)
    throw new RouteConfigError(
      'price_table_invalid',
      `the prices of ${name} must be numbers from 0: input, output, and if wanted cacheRead, cacheWrite`,
    );
  return { input, output, ...(isPrice(cacheRead) ? { cacheRead } : {}), ...(isPrice(cacheWrite) ? { cacheWrite } : {}) };
}

function isPrice(part: unknown): part is number {
  return typeof part === 'number' && part >= 0 && part <= PRICE_MAX;
}

function recordOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}

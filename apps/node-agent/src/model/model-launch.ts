import { readFile } from 'node:fs/promises';
import type { ModelRouteSettings } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import type { RouteRules } from '@firecrew/model-proxy';
import { MODEL_FEATURES, MODEL_FORMATS, parsePriceTable } from '@firecrew/model-route';
import * as z from 'zod';

const MICROS = 1_000_000;
const priceSchema = z.strictObject({
  input: z.number(),
  output: z.number(),
  cacheRead: z.number().optional(),
  cacheWrite: z.number().optional(),
});

/** The model route of an attempt in its launch file. Where it leads is the broker's to know; the handle comes over the control socket. */
export const modelLaunchSchema = z.strictObject({
  format: z.enum(MODEL_FORMATS),
  broker: z.string().startsWith('/').describe('Socket of the credential broker.'),
  header: z.strictObject({ name: z.string(), prefix: z.string() }).nullable(),
  features: z.array(z.enum(MODEL_FEATURES)),
  models: z.array(z.string()).nullable(),
  outputCap: z.int().nullable(),
  budget: z.strictObject({ tokens: z.int().nullable(), micros: z.int().nullable() }),
  prices: z.record(z.string(), priceSchema).nullable(),
  hasCredential: z.boolean(),
});
export type ModelLaunch = z.infer<typeof modelLaunchSchema>;

/** Makes the launch part of a route. Throws `model_route_unreadable` for a file of prices that cannot be used. */
export async function modelLaunchOf(route: ModelRouteSettings, broker: string): Promise<ModelLaunch> {
  const { budget } = route;
  const hasBudget = budget?.tokens !== undefined || budget?.money !== undefined;
  return {
    format: route.format,
    broker,
    header: route.header ?? null,
    features: route.features,
    models: route.models ?? null,
    outputCap: hasBudget ? route.outputTokens : null,
    budget: { tokens: budget?.tokens ?? null, micros: budget?.money === undefined ? null : Math.round(budget.money * MICROS) },
    prices: route.priceFile === undefined ? null : await readOperatorFile(route.priceFile, (text) => parsePriceTable(JSON.parse(text))),
    hasCredential: route.credential !== null,
  };
}

/** What the proxy of a route is made with. */
export function routeRulesOf(launch: ModelLaunch): RouteRules {
  const { format, header, hasCredential, features, models, outputCap, budget, prices } = launch;
  return {
    format,
    ...(header === null ? {} : { header }),
    hasCredential,
    features,
    models,
    outputCap,
    budget,
    prices,
  };
}

/** Reads a file that a route names. Throws `model_route_unreadable`. */
export async function readOperatorFile<Value>(file: string, read: (text: string) => Value): Promise<Value> {
  try {
    return read(await readFile(file, 'utf8'));
  } catch (cause) {
    throw new CodedError('model_route_unreadable', `the file ${file} of a model route cannot be used: ${messageOf(cause)}`, {
      id: file,
      action: 'Correct the file or `modelRoutes` of the node agent; the turn is not started without it.',
      cause,
    });
  }
}

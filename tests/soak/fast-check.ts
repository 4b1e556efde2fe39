// Stands for fast-check in a soak: the properties of the tests, as they are written, with many more runs and one seed for all.
import { createRequire } from 'node:module';
import type * as FastCheck from 'fast-check';

// Not by its name, which leads here.
const { default: real }: { default: typeof FastCheck.default } = await import(createRequire(import.meta.url).resolve('fast-check'));

const environment = process.env;
const factor = Number(environment.FIRECREW_SOAK_FACTOR ?? 1);
const seed = Number(environment.FIRECREW_SOAK_SEED ?? 0);
/** Runs of a property that names none. */
const DEFAULT_RUNS = 100;

const assert = ((property: FastCheck.IRawProperty<unknown>, parameters?: FastCheck.Parameters<unknown>) =>
  real.assert(property, { seed, ...parameters, numRuns: (parameters?.numRuns ?? DEFAULT_RUNS) * factor })) as typeof real.assert;

export default { ...real, assert };

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  livePhaseKeys,
  lookUpPhaseKey,
  MAX_COMMAND_CHARS,
  MAX_TASK_CHARS,
  PHASE_KINDS,
  type PhaseConfigKey,
  phaseConfigKeys,
} from '../src/index.ts';

const source = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

/** The readers that the sources do not have. */
const missingReaders = (keys: readonly PhaseConfigKey[]): string[] =>
  keys.flatMap(({ key, readers }) =>
    readers.filter(({ file, reads }) => !source(file).includes(reads)).map(({ file }) => `${key} is not read in ${file}`),
  );

describe('the registry of phase settings', () => {
  it('names readers that exist in the sources', () => {
    expect(missingReaders(phaseConfigKeys())).toEqual([]);
  });

  it('would be caught naming one that does not', () => {
    const [task] = phaseConfigKeys();
    if (task === undefined) throw new Error('no setting');
    const planted = { ...task, readers: [{ file: 'apps/server/src/driver/build-spec.ts', reads: 'request.nobodyReadsThis' }] };
    expect(missingReaders([planted])).toEqual(['task is not read in apps/server/src/driver/build-spec.ts']);
  });

  it('tells settings that are read, inert and unknown apart', () => {
    expect(lookUpPhaseKey('task').status).toBe('live');
    expect(lookUpPhaseKey('commitPolicy').status).toBe('inert');
    for (const name of ['Task', 'task ', 'order', '', 'constructor', '__proto__']) expect(lookUpPhaseKey(name).status).toBe('unknown');
    expect(livePhaseKeys()).toEqual(
      phaseConfigKeys()
        .filter((entry) => entry.readers.length > 0)
        .map((entry) => entry.key),
    );
  });

  it('lists what the API takes for a phase, setting for setting', () => {
    const [, body = ''] =
      /phaseRequestSchema = z\.strictObject\(\{([\s\S]*?)\n\}\);/.exec(source('packages/protocol/src/http-api.ts')) ?? [];
    const fields = [...body.matchAll(/^ {2}(\w+): /gm)].map((match) => match[1]);
    expect(fields.length).toBeGreaterThan(3);
    for (const field of fields.filter((name) => name !== 'kind')) expect(lookUpPhaseKey(field ?? '').status, field).not.toBe('unknown');
    for (const key of livePhaseKeys()) expect(fields, key).toContain(key);
  });

  it('has the kinds and bounds of the API', () => {
    const values = source('packages/protocol/src/values.ts');
    expect(values).toContain(`phaseKindSchema = z.enum([${PHASE_KINDS.map((kind) => `'${kind}'`).join(', ')}])`);
    const bound = (name: string): number => Number(new RegExp(`${name} = ([0-9_]+)`).exec(values)?.[1]?.replaceAll('_', ''));
    expect([bound('MAX_TASK_CHARS'), bound('MAX_COMMAND_CHARS')]).toEqual([MAX_TASK_CHARS, MAX_COMMAND_CHARS]);
  });
});

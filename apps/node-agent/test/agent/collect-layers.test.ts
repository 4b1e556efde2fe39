import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectLayers } from '../../src/agent/collect-layers.ts';
import { layerConfigSchema } from '../../src/vm/layer-settings.ts';

let home = '';
let lines: string[] = [];
const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
const setupLayers = layerConfigSchema.parse({});
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'fc-collect-'));
  lines = [];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe('the start of a node agent', () => {
  it('makes the store of layers, and removes what was not used for long', async () => {
    const [old, fresh] = ['a', 'b'].map((digit) => join(home, 'layers', digit.repeat(64)));
    for (const folder of [old, fresh]) {
      mkdirSync(folder ?? '', { recursive: true });
      writeFileSync(join(folder ?? '', 'disk'), 'disk');
    }
    utimesSync(old ?? '', 1, 1);
    await collectLayers({ home, setupLayers }, log);
    expect(readdirSync(join(home, 'layers'))).toEqual(['b'.repeat(64)]);
    expect(lines.join('')).toContain('a'.repeat(64));
  });

  it('leaves layers alone where none are kept, and goes on where they cannot be looked through', async () => {
    await collectLayers({ home, setupLayers: null }, log);
    expect([existsSync(join(home, 'layers')), lines]).toEqual([false, []]);
    writeFileSync(join(home, 'layers'), '');
    await collectLayers({ home, setupLayers }, log);
    expect(lines.join('')).toContain('layer_store_failed');
  });
});

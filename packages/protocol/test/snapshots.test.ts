import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  acceptedSchema,
  attemptResultSchema,
  controlReplySchema,
  controlRequestSchema,
  createMissionSchema,
  fleetViewSchema,
  GENERATION,
  guestRequestSchema,
  healthReplySchema,
  hostRequestSchema,
  MIN_GENERATION,
  missionEventSchema,
  missionViewSchema,
  nodeMessageSchema,
  putEndSchema,
  refusalSchema,
  runRecordSchema,
  serverFileSchema,
  serverMessageSchema,
  shimIdentitySchema,
  trailerReplySchema,
  turnEventSchema,
  turnSpecSchema,
  waitReplySchema,
} from '../src/index.ts';

/** What each wire says in this generation. A frozen file gains optional fields alone: a change of meaning is a new generation with a file of its own. */
const WIRES = {
  'guest-link': {
    hostRequestSchema,
    guestRequestSchema,
    acceptedSchema,
    refusalSchema,
    healthReplySchema,
    waitReplySchema,
    putEndSchema,
    trailerReplySchema,
  },
  'node-link': { nodeMessageSchema, serverMessageSchema },
  'http-api': { createMissionSchema, missionViewSchema, missionEventSchema, fleetViewSchema, runRecordSchema },
  'turn-folder': {
    turnSpecSchema,
    turnEventSchema,
    attemptResultSchema,
    shimIdentitySchema,
    controlRequestSchema,
    controlReplySchema,
    serverFileSchema,
  },
} as const;

describe('the wires of generation 1', () => {
  it('are the generation that this build speaks', () => {
    expect(GENERATION).toBe(1);
    expect(MIN_GENERATION).toEqual({ guestLink: 1, nodeLink: 1, httpApi: 1, turnFolder: 1 });
  });

  it.each(Object.entries(WIRES))('%s is as it was frozen', async (name, schemas) => {
    const now = Object.fromEntries(
      Object.entries(schemas).map(([key, schema]) => [key, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })]),
    );
    const text = `${JSON.stringify(now, null, 2)}\n`;
    const file = new URL(`../snapshots/generation-1/${name}.json`, import.meta.url);
    if (process.env.FIRECREW_WRITE_SNAPSHOTS === '1') await (await import('node:fs/promises')).writeFile(file, text);
    expect(text).toBe(readFileSync(file, 'utf8'));
  });
});

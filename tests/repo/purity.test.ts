// What the purity check refuses in a decision, and what it lets stand.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { append, BASE, DECISION, findingsOf, manifest } from './plant.ts';
import { type SmallWorkspace, smallWorkspace } from './small-workspace.ts';

let workspace: SmallWorkspace;
beforeEach(() => {
  workspace = smallWorkspace();
});
afterEach(() => workspace.remove());

const run = (name: string) => findingsOf(workspace, name);

/** [what stands in a decision, words of the finding] */
const IMPURE: readonly (readonly [string, RegExp])[] = [
  ['export const a = (): number => Date.now();', /Date only as/],
  ["export const a = (): unknown => Date['now']();", /Date only as/],
  ['export const a = (): Date => new Date();', /Date only as/],
  ['export const a = (all: [number]): Date => new Date(...all);', /Date only as/],
  ['export const a = (): unknown => Date();', /Date only as/],
  ['export const { now } = Date;', /Date only as/],
  ['export const a = (Date: { now(): number }): number => Date.now();', /Date only as/],
  ['export const a = (): number => Math.random();', /Math only with/],
  ["export const a = (): number => Math['random']();", /Math only with/],
  ['export const { random } = Math;', /Math only with/],
  ['export const a = (): number => performance.now();', /performance is not an argument/],
  ['export const a = (): unknown => globalThis;', /globalThis is not an argument/],
  ["export const a = (): unknown => globalThis['process'];", /globalThis is not an argument/],
  ['export const a = (): unknown => process.env;', /process is not an argument/],
  ['export const a = { process };', /process is not an argument/],
  ["export const a = (): unknown => eval('1');", /eval is not an argument/],
  ['export const a = import.meta.url;', /import\.meta/],
  ["import { readFileSync } from 'node:fs';\nexport const a = readFileSync;", /a Node module: node:fs/],
  ["import { readFileSync } from 'fs';\nexport const a = readFileSync;", /a Node module: fs/],
  ["export { readFileSync } from 'node:fs';", /a Node module: node:fs/],
  ["export * from 'node:fs';", /a Node module: node:fs/],
  ["import '@firecrew/base';", /another package of ours/],
  ["import type { Id } from '@firecrew/base';\nexport type A = Id;", /another package of ours/],
  ["export type A = import('@firecrew/base').Id;", /another package of ours/],
  ["import * as z from 'zod';\nexport const a = z;", /does not declare: zod/],
  ["import { a } from '../../base/src/index.ts';\nexport const b = a;", /leaves the sources/],
  ["import { a } from './testing.ts';\nexport const b = a;", /test support/],
  ["export const a = (): Promise<unknown> => import('node:fs');", /a dynamic import/],
  ['export const a = await Promise.resolve(1);', /await at the top level/],
  ['let count = 0;\nexport const a = (): number => ++count;', /module-level let/],
  ['export var count = 0;', /module-level var/],
  ['export const a = (x: string, y: string): number => x.localeCompare(y);', /locale or time zone/],
  ['export const a = (at: number): number => new Date(at).getHours();', /locale or time zone/],
];

/** What a decision may hold. */
const PURE: readonly string[] = [
  'export const a = (at: number): string => new Date(at).toISOString();',
  'export const a = (year: number): number => Date.UTC(year, 0, 1);',
  'export const a = (x: unknown): boolean => x instanceof Date;',
  'export const a = (x: number): number => Math.max(x, 0);',
  'export const a = (process: { pid: number }): number => process.pid;',
  'export const a = (task: { process: string }): string => task.process;',
  'export interface A {\n  readonly performance: number;\n}',
  'export function a(): number {\n  let sum = 0;\n  for (const one of [1, 2]) sum += one;\n  return sum;\n}',
  'export const a = (text: string): Uint8Array => new TextEncoder().encode(text);',
  'export const a = (at: Date): number => at.getTime();',
];

describe('purity', () => {
  it.each(IMPURE)('refuses %j in a decision', async (text, words) => {
    append(DECISION, text)(workspace);
    expect(await run('purity')).toMatch(words);
  });

  it.each(PURE)('allows %j in a decision', async (text) => {
    append(DECISION, text)(workspace);
    expect(await run('purity')).toBe('');
  });

  it('allows all of it in a package that acts', async () => {
    append(BASE, 'export const a = (): number => Date.now() + Math.random() + process.pid;')(workspace);
    expect(await run('purity')).toBe('');
  });

  it('allows it in the test support of a decision', async () => {
    workspace.write('packages/topology/src/testing.ts', 'export const a = (): number => Date.now();\n');
    expect(await run('purity')).toBe('');
  });

  it('allows a pure library that package.json declares', async () => {
    manifest('packages/topology/package.json', { dependencies: { 'ipaddr.js': '2.5.0' } })(workspace);
    append(DECISION, "export { parse } from 'ipaddr.js';")(workspace);
    expect(await run('purity')).toBe('');
  });
});

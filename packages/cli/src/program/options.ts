import { type Command, Option } from 'commander';

/** Adds a command to its parent; `name` is what a call of it is known by, the first word of `usage` where it is left out. */
export type AddCommand = (parent: Command, usage: string, text: string, name?: string) => Command;

const collect = (value: string, before: readonly string[]): string[] => [...before, value];
/** An option that may be given several times. */
export const list = (flags: string, text: string): Option => new Option(flags, text).default([], 'none').argParser(collect);
/** The option of every command that programs call. */
export const json = (): Option => new Option('--json', 'print JSON for programs').default(false, 'off');

import { MAX_ARGUMENTS, MAX_ARGUMENTS_BYTES, MAX_STRING_BYTES } from './limits.ts';
import { byteLength, refuseSpawn, type SpawnRefusal } from './rules.ts';

/** The arguments to start with: a copy, at least one long. */
export interface AcceptedCommand {
  readonly verdict: 'accepted';
  readonly argv: readonly [string, ...string[]];
}

/** Checks an argument list by form and size. A long text belongs in a file or on standard input. */
export function checkCommand(argv: unknown): AcceptedCommand | SpawnRefusal {
  if (!Array.isArray(argv)) return refuseSpawn('command_not_a_list', 'the command is no list of arguments');
  if (argv.length > MAX_ARGUMENTS)
    return refuseSpawn('command_too_many', `the command has ${argv.length} arguments; the limit is ${MAX_ARGUMENTS}`);
  const list: readonly unknown[] = argv;
  const accepted: string[] = [];
  let total = 0;
  for (const [index, argument] of list.entries()) {
    if (typeof argument !== 'string') return refuseSpawn('command_not_a_string', `argument ${index} is not a string`, String(index));
    if (argument.includes('\0')) return refuseSpawn('command_nul', `argument ${index} holds a NUL`, String(index));
    const bytes = byteLength(argument);
    total += bytes + 1;
    if (bytes > MAX_STRING_BYTES || total > MAX_ARGUMENTS_BYTES) {
      const limit = bytes > MAX_STRING_BYTES ? MAX_STRING_BYTES : MAX_ARGUMENTS_BYTES;
      return refuseSpawn('command_too_large', `argument ${index} exceeds ${limit} bytes; pass a long text as a file`, String(index));
    }
    accepted.push(argument);
  }
  const [program, ...rest] = accepted;
  if (program === undefined || program === '') return refuseSpawn('command_missing', 'the command names no program');
  return { verdict: 'accepted', argv: [program, ...rest] };
}

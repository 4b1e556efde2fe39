import pc from 'picocolors';

/** Where a command writes, and how. */
export interface Output {
  /** One line of the result. */
  line(text: string): void;
  /** One line beside the result: progress, notices, errors. */
  note(text: string): void;
  /** Standard output is a terminal that a person looks at. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly colours: ReturnType<typeof pc.createColors>;
  /** Text that is written as it is, without a line end. */
  raw(text: string): void;
}

/** Whether colours are wanted: on a terminal alone, and never with `NO_COLOR` or a dumb terminal. */
export function wantsColour(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return false;
  return isTerminal && env.TERM !== 'dumb';
}

/** The output of this process. */
export function processOutput(env: Readonly<Record<string, string | undefined>>): Output {
  const isTerminal = process.stdout.isTTY === true && env.TERM !== 'dumb';
  return {
    line: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
    raw: (text) => void process.stdout.write(text),
    isTerminal,
    columns: process.stdout.columns || 100,
    colours: pc.createColors(wantsColour(isTerminal, env)),
  };
}

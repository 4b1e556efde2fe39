import type { LogChunk, MissionEvent } from '@firecrew/protocol';
import { LogLines } from './log-lines.ts';
import type { Output } from './output.ts';
import { type EventLine, renderEvent, seconds } from './render-event.ts';
import { displayWidth } from './table.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 120;
const CLEAR_LINE = '\r\u001b[2K';

/** The live view of one run: plain lines, and on a terminal a last line that says what goes on and for how long. */
export class RunScreen {
  readonly #out: Output;
  readonly #logs = new Map<string, LogLines>();
  readonly #startedAt = performance.now();
  #status = '';
  #frame = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(out: Output) {
    this.#out = out;
  }

  /** Begins the last line; nothing on a pipe. */
  start(): void {
    if (!this.#out.isTerminal) return;
    this.#timer = setInterval(() => this.#draw(), FRAME_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    for (const [key, lines] of this.#logs) for (const line of lines.end()) this.#logLine(key, line);
    this.#logs.clear();
    if (this.#out.isTerminal) this.#out.raw(CLEAR_LINE);
  }

  event(event: MissionEvent): void {
    for (const line of renderEvent(event)) {
      this.say(line, event.at);
      if (line.tone !== 'quiet') this.#status = line.text;
    }
  }

  log(chunk: LogChunk): void {
    const key = `${chunk.turnId}.${chunk.attempt}`;
    const lines = this.#logs.get(key) ?? new LogLines();
    this.#logs.set(key, lines);
    for (const line of lines.push(Buffer.from(chunk.data, 'base64'))) this.#logLine(key, line);
  }

  say(line: EventLine, at?: string): void {
    const time = at === undefined ? '' : `${this.#out.colours.dim(clockTime(at))} `;
    this.#print(`${time}${paint(this.#out, line)}`);
  }

  #logLine(_key: string, line: string): void {
    this.#print(`${this.#out.colours.dim('         │')} ${line}`);
  }

  #print(text: string): void {
    if (this.#out.isTerminal) this.#out.raw(CLEAR_LINE);
    this.#out.line(text);
    if (this.#timer !== undefined) this.#draw();
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const text = statusLine(FRAMES[this.#frame] ?? '', this.#status, performance.now() - this.#startedAt, this.#out.columns);
    this.#out.raw(`${CLEAR_LINE}${this.#out.colours.cyan(text)}`);
  }
}

/** The last line of the live view, never wider than the terminal: a wrapped one could not be wiped. */
export function statusLine(frame: string, status: string, elapsedMs: number, columns: number): string {
  const head = `${frame} ${seconds(elapsedMs)}  `;
  let text = status === '' ? 'starting' : status;
  while (text !== '' && displayWidth(head + text) >= columns) text = text.slice(0, -1);
  return head + text;
}

/** A line in the colour of its tone. */
export function paint(out: Pick<Output, 'colours'>, line: EventLine): string {
  const { colours } = out;
  const tones = { plain: String, good: colours.green, bad: colours.red, warn: colours.yellow, quiet: colours.dim };
  return tones[line.tone](line.text);
}

function clockTime(at: string): string {
  return new Date(at).toTimeString().slice(0, 8);
}

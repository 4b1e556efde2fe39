import { CaptureError } from '../capture-error.ts';
import type { SkipReason } from '../reasons.ts';
import { MAX_TRAILING_BYTES, type TreeLimits, treeLimits } from '../tree/limits.ts';
import { type AdmittedEntry, type ProposedEntry, TreeGuard } from '../tree/tree-guard.ts';
import { EXTENSION_FLAGS, Extensions } from './extensions.ts';
import { isZeroBlock, parseHeader, type RawHeader, TAR_BLOCK_BYTES } from './parse-header.ts';

/** What the reader says about an archive, in order. The bytes of a `data` event are a view into the chunk that was pushed; nothing else is. */
export type TarEvent =
  | { readonly kind: 'entry'; readonly entry: Exclude<AdmittedEntry, { verdict: 'skip' | 'root' }> }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  | { readonly kind: 'entry-end' }
  | { readonly kind: 'skipped'; readonly path: Uint8Array; readonly reason: SkipReason }
  | { readonly kind: 'end' };

type State = 'header' | 'meta' | 'data' | 'dropped' | 'padding' | 'end-mark' | 'ended' | 'refused';

const FILE_FLAGS = '0\x007';
const SPECIAL_FLAGS = '346';
// Sparse files, volumes and other vendor forms change how what follows is read, so they cannot be stepped over.
const REFUSED_FLAGS = 'SMDVNXEI';
const NOTHING = new Uint8Array(0);

/**
 * Reads an untrusted tar stream, chunk by chunk, with no I/O: `push` gives events, `finish` demands the end mark.
 * Regular files, folders, symbolic links and hard links to earlier files are entries; device nodes, FIFOs, unknown types
 * and `.git` in any spelling are skipped and told; everything else refuses the archive.
 * After a refusal every further call refuses too.
 */
export class TarReader {
  readonly #limits: TreeLimits;
  readonly #guard: TreeGuard;
  readonly #extensions = new Extensions();
  readonly #block = new Uint8Array(TAR_BLOCK_BYTES);
  #filled = 0;
  #state: State = 'header';
  #remaining = 0;
  #padding = 0;
  #metaFlag = '';
  #meta: Uint8Array[] = [];
  #trailing = 0;
  #globalHeaders = 0;

  constructor(limits: Partial<TreeLimits> = {}) {
    this.#limits = treeLimits(limits);
    this.#guard = new TreeGuard(this.#limits);
  }

  /** Takes the next bytes. @throws CaptureError when the archive is refused. */
  push(chunk: Uint8Array): TarEvent[] {
    const events: TarEvent[] = [];
    try {
      for (let at = 0; at < chunk.length; ) at += this.#step(chunk, at, events);
    } catch (error) {
      this.#state = 'refused';
      throw error;
    }
    return events;
  }

  /** Says that the stream has ended. @throws CaptureError `missing_end` or `truncated` when the archive had not. */
  finish(): void {
    if (this.#state === 'ended') return;
    const inside = this.#state !== 'header' && this.#state !== 'end-mark';
    throw inside || this.#filled > 0
      ? new CaptureError('truncated', 'the archive ends inside an entry')
      : new CaptureError('missing_end', 'the archive has no end mark');
  }

  /** Folders that were named and hold nothing; complete after the end. */
  emptyDirectories(): Uint8Array[] {
    return this.#guard.emptyDirectories();
  }

  /** Takes what one state can take of the input from `at` on; says how much that was. */
  #step(input: Uint8Array, at: number, events: TarEvent[]): number {
    switch (this.#state) {
      case 'header':
      case 'end-mark':
        return this.#fillBlock(input, at, events);
      case 'meta':
      case 'data':
      case 'dropped':
        return this.#takeContent(input.subarray(at, at + this.#remaining), events);
      case 'padding':
        return this.#takePadding(input.length - at);
      case 'ended':
        return this.#takeTrailing(input.subarray(at));
      default:
        throw new CaptureError('truncated', 'the archive was refused before');
    }
  }

  #fillBlock(input: Uint8Array, at: number, events: TarEvent[]): number {
    const taken = Math.min(TAR_BLOCK_BYTES - this.#filled, input.length - at);
    this.#block.set(input.subarray(at, at + taken), this.#filled);
    this.#filled += taken;
    if (this.#filled === TAR_BLOCK_BYTES) {
      this.#filled = 0;
      this.#takeBlock(events);
    }
    return taken;
  }

  #takeBlock(events: TarEvent[]): void {
    const isZero = isZeroBlock(this.#block);
    if (this.#state === 'end-mark') {
      if (!isZero) throw new CaptureError('content_after_end', 'an entry follows a zero block');
      this.#state = 'ended';
      events.push({ kind: 'end' });
    } else if (isZero) {
      this.#extensions.refuseDangling();
      this.#state = 'end-mark';
    } else this.#takeHeader(parseHeader(this.#block), events);
  }

  #takeHeader(header: RawHeader, events: TarEvent[]): void {
    if (EXTENSION_FLAGS.includes(header.typeFlag)) {
      this.#startMeta(header);
      return;
    }
    const entry = propose(this.#extensions.apply(header));
    const admitted = this.#guard.admit(entry);
    if (admitted.verdict === 'skip') events.push({ kind: 'skipped', path: admitted.path, reason: admitted.reason });
    if (admitted.verdict === 'keep') events.push({ kind: 'entry', entry: admitted });
    this.#startContent(admitted.verdict === 'keep' ? 'data' : 'dropped', entry.size);
    if (admitted.verdict === 'keep' && entry.size === 0) events.push({ kind: 'entry-end' });
  }

  #startMeta(header: RawHeader): void {
    if (header.size > this.#limits.maxMetaBytes)
      throw new CaptureError('metadata_too_large', `an extension header has ${header.size} bytes`);
    if (header.typeFlag === 'g') this.#globalHeaders += 1;
    if (this.#globalHeaders > this.#limits.maxEntries) throw new CaptureError('too_many_entries', 'too many global headers');
    this.#metaFlag = header.typeFlag;
    this.#meta = [];
    this.#startContent('meta', header.size);
    if (header.size === 0) this.#extensions.take(this.#metaFlag, NOTHING);
  }

  #startContent(state: State, size: number): void {
    this.#remaining = size;
    this.#padding = (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
    this.#state = size > 0 ? state : 'header';
  }

  #takeContent(bytes: Uint8Array, events: TarEvent[]): number {
    this.#remaining -= bytes.length;
    if (this.#state === 'data') events.push({ kind: 'data', bytes });
    if (this.#state === 'meta') this.#meta.push(new Uint8Array(bytes));
    if (this.#remaining === 0) {
      if (this.#state === 'data') events.push({ kind: 'entry-end' });
      if (this.#state === 'meta') this.#endMeta();
      this.#state = this.#padding > 0 ? 'padding' : 'header';
    }
    return bytes.length;
  }

  #endMeta(): void {
    const joined = new Uint8Array(this.#meta.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#meta) {
      joined.set(part, at);
      at += part.length;
    }
    this.#meta = [];
    this.#extensions.take(this.#metaFlag, joined);
  }

  #takePadding(available: number): number {
    const taken = Math.min(this.#padding, available);
    this.#padding -= taken;
    if (this.#padding === 0) this.#state = 'header';
    return taken;
  }

  #takeTrailing(input: Uint8Array): number {
    this.#trailing += input.length;
    if (this.#trailing > MAX_TRAILING_BYTES) throw new CaptureError('padding_too_large', 'too many bytes follow the end mark');
    if (!isZeroBlock(input)) throw new CaptureError('content_after_end', 'content follows the end mark');
    return input.length;
  }
}

function propose(header: RawHeader): ProposedEntry {
  const { name, size, executable } = header;
  if (REFUSED_FLAGS.includes(header.typeFlag)) throw new CaptureError('unsupported_type', 'an entry is of a refused type', name);
  return { name, size, executable, type: typeOf(header.typeFlag), target: '12'.includes(header.typeFlag) ? header.linkName : NOTHING };
}

function typeOf(flag: string): ProposedEntry['type'] {
  if (FILE_FLAGS.includes(flag)) return 'file';
  if (flag === '5') return 'directory';
  if (flag === '2') return 'link';
  if (flag === '1') return 'copy';
  return SPECIAL_FLAGS.includes(flag) ? 'special' : 'unknown';
}

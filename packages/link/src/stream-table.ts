import { MAX_STREAM_ID } from './limits.ts';
import { ProtocolViolation } from './reasons.ts';
import type { StreamWire } from './stream-wire.ts';

/** The streams of a session by id, and which ids were ever used. Ids of a side go up by 2 without gaps. */
export class StreamTable {
  readonly #byId = new Map<number, StreamWire>();
  readonly #waiting = new Set<StreamWire>();
  readonly #localParity: number;
  #nextLocal: number;
  #nextPeer: number;
  #localOpen = 0;
  #peerOpen = 0;

  constructor(side: 'dialler' | 'listener') {
    this.#nextLocal = side === 'dialler' ? 1 : 2;
    this.#nextPeer = side === 'dialler' ? 2 : 1;
    this.#localParity = this.#nextLocal % 2;
  }

  get localOpen(): number {
    return this.#localOpen;
  }

  get peerOpen(): number {
    return this.#peerOpen;
  }

  /** Whether this side has ids left for what waits and one more. */
  get idsLeft(): boolean {
    return this.#nextLocal + 2 * this.#waiting.size <= MAX_STREAM_ID;
  }

  /** A stream of this side whose OPEN has not left. */
  addWaiting(wire: StreamWire): void {
    this.#waiting.add(wire);
    this.#localOpen += 1;
  }

  /** Numbers a waiting stream: its OPEN leaves now. */
  number(wire: StreamWire): number {
    const id = this.#nextLocal;
    this.#nextLocal += 2;
    this.#waiting.delete(wire);
    this.#byId.set(id, wire);
    return id;
  }

  /** Takes the id of the peer's OPEN. Throws `bad_stream_id` unless it is the peer's next one. */
  claimPeerId(id: number): void {
    if (id !== this.#nextPeer) throw new ProtocolViolation('bad_stream_id', `The peer opened stream ${id} instead of ${this.#nextPeer}.`);
    this.#nextPeer += 2;
  }

  addPeer(wire: StreamWire, id: number): void {
    this.#byId.set(id, wire);
    this.#peerOpen += 1;
  }

  /** The open stream of `id`; undefined when it is over. Throws `stream_never_opened`. */
  find(id: number): StreamWire | undefined {
    const wire = this.#byId.get(id);
    if (wire !== undefined) return wire.gone ? undefined : wire;
    if (id >= (this.isLocal(id) ? this.#nextLocal : this.#nextPeer)) {
      throw new ProtocolViolation('stream_never_opened', `The peer sent a frame for stream ${id}, which was never opened.`);
    }
    return undefined;
  }

  isLocal(id: number): boolean {
    return id % 2 === this.#localParity;
  }

  remove(wire: StreamWire): void {
    const known = wire.id === undefined ? this.#waiting.delete(wire) : this.#byId.delete(wire.id);
    if (!known) return;
    if (wire.role === 'opener') this.#localOpen -= 1;
    else this.#peerOpen -= 1;
  }

  all(): StreamWire[] {
    return [...this.#byId.values(), ...this.#waiting];
  }
}

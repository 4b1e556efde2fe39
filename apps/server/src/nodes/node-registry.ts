import type { NodeCapabilities, NodeHealth, NodeVms, ServerMessage } from '@firecrew/protocol';

/** A node whose link ends in this process. */
export interface ConnectedNode {
  readonly id: string;
  readonly name: string;
  /** Queues a message; one that cannot be sent is asked for again by the state it belongs to. */
  send(message: ServerMessage): void;
  close(code: string): void;
  /** Hash of the token that fetches images while this connection is up. */
  readonly imagesTokenHash: string;
  capabilities: NodeCapabilities | null;
  health: NodeHealth | null;
  /** Receiver's monotonic time of the newest health report, in `ms`. */
  healthAtMs: number | null;
  /** What it said is on it, with that health report; null where it is one that does not say. */
  vms: NodeVms | null;
  /** How many attempts of the node have ended, and when that number was first seen, in `ms` of the same clock; null where none has. */
  lastEnd: { readonly count: number; readonly atMs: number } | null;
  /** Attempts that this connection was told to start, as `turnId.attempt`. */
  readonly told: Set<string>;
}

/** The nodes that are connected to this replica. */
export class NodeRegistry {
  readonly #nodes = new Map<string, ConnectedNode>();

  /** Makes `node` the one connection of its id; an older one is closed. */
  add(node: ConnectedNode): void {
    this.#nodes.get(node.id)?.close('link_replaced');
    this.#nodes.set(node.id, node);
  }

  /** Forgets `node` unless a newer connection took its place. */
  remove(node: ConnectedNode): void {
    if (this.#nodes.get(node.id) === node) this.#nodes.delete(node.id);
  }

  get(id: string): ConnectedNode | undefined {
    return this.#nodes.get(id);
  }

  /** The node whose connection a token was given to; undefined when that connection is gone. */
  withImagesToken(hash: string): ConnectedNode | undefined {
    return this.all().find((node) => node.imagesTokenHash === hash);
  }

  all(): readonly ConnectedNode[] {
    return [...this.#nodes.values()];
  }
}

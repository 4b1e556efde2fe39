import type { BrokerRoute } from './routes.ts';
import type { UpstreamClient } from './upstream-client.ts';

/** The right of one turn to call one route. */
export interface BrokerHandle {
  readonly handle: string;
  /** Name of the route. */
  readonly route: string;
  /** Time until which it holds, in `ms` of the broker's clock: the end of the turn's lease. */
  readonly validUntilMs: number;
}

/** A call that can be ended from outside. */
export interface Cuttable {
  cut(): void;
}

type Dial = (route: BrokerRoute) => UpstreamClient;

/** A handle that holds, with its calls under way. Connections to an upstream are its own: no other turn's request goes over them. */
export class LiveHandle {
  readonly route: string;
  readonly calls = new Set<Cuttable>();
  validUntilMs: number;
  readonly #dial: Dial;
  #upstream: { readonly of: BrokerRoute; readonly client: UpstreamClient } | undefined;

  constructor({ route, validUntilMs }: BrokerHandle, dial: Dial) {
    this.route = route;
    this.validUntilMs = validUntilMs;
    this.#dial = dial;
  }

  /** Where calls of this turn go. Where the route was said anew, idle connections of the one before close by themselves. */
  upstreamOf(route: BrokerRoute): UpstreamClient {
    if (this.#upstream?.of !== route) this.#upstream = { of: route, client: this.#dial(route) };
    return this.#upstream.client;
  }

  end(): void {
    for (const call of this.calls) call.cut();
    this.#upstream?.client.close();
  }
}

/** The handles that hold now. One that is taken away, or whose time is over, loses its calls in the same moment. */
export class HandleTable {
  readonly #clock: () => number;
  readonly #dial: Dial;
  readonly #live = new Map<string, LiveHandle>();

  constructor(clock: () => number, dial: Dial) {
    this.#clock = clock;
    this.#dial = dial;
  }

  /** Takes the list of all handles there are. */
  replace(handles: readonly BrokerHandle[]): void {
    const named = new Set(handles.map(({ handle }) => handle));
    for (const handle of this.#live.keys()) if (!named.has(handle)) this.#end(handle);
    for (const item of handles) {
      const live = this.#live.get(item.handle);
      if (live === undefined) this.#live.set(item.handle, new LiveHandle(item, this.#dial));
      else live.validUntilMs = item.validUntilMs;
    }
    this.endLate();
  }

  /** The handle as it holds now; undefined for one that is not known, or not any more. */
  find(handle: string | undefined): LiveHandle | undefined {
    const live = handle === undefined ? undefined : this.#live.get(handle);
    if (handle === undefined || live === undefined) return undefined;
    if (this.#clock() < live.validUntilMs) return live;
    this.#end(handle);
    return undefined;
  }

  /** Ends those whose time is over. */
  endLate(): void {
    const now = this.#clock();
    for (const [handle, { validUntilMs }] of this.#live) if (now >= validUntilMs) this.#end(handle);
  }

  #end(handle: string): void {
    const live = this.#live.get(handle);
    this.#live.delete(handle);
    live?.end();
  }
}

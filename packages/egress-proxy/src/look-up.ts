import { lookup } from 'node:dns/promises';

/** Turns a normalised name into the texts of its addresses, in the order to dial them. It must throw when it could not find out. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** The system's resolver: every address, in its order. */
export const defaultResolve: Resolve = async (host) => {
  const found = await lookup(host, { all: true, order: 'verbatim' });
  return found.map(({ address }) => address);
};

interface InFlight {
  readonly answer: Promise<readonly string[] | undefined>;
  callers: number;
}

/**
 * Bounds the look-ups in flight. A name that is being looked up is not asked twice, and each answer is used once: the next connection asks
 * again. A look-up that was given up keeps its slot until the resolver lets go, since it still holds a thread.
 */
export class LookUps {
  private readonly resolve: Resolve;
  private free: number;
  private readonly waiting: (() => void)[] = [];
  private readonly inFlight = new Map<string, InFlight>();

  constructor(resolve: Resolve, slots: number) {
    this.resolve = resolve;
    this.free = slots;
  }

  /** `answer` gives undefined only to callers that have all called `release` before their turn came. */
  start(host: string): { answer: Promise<readonly string[] | undefined>; release: () => void } {
    let entry = this.inFlight.get(host);
    if (entry === undefined) {
      const created: InFlight = { answer: Promise.resolve().then(() => this.run(host, created)), callers: 0 };
      entry = created;
      this.inFlight.set(host, entry);
    }
    const joined = entry;
    joined.callers += 1;
    return {
      answer: joined.answer,
      release: () => {
        joined.callers -= 1;
      },
    };
  }

  private async run(host: string, entry: InFlight): Promise<readonly string[] | undefined> {
    try {
      await this.slot();
      try {
        return entry.callers === 0 ? undefined : await this.resolve(host);
      } finally {
        this.free += 1;
        this.waiting.shift()?.();
      }
    } finally {
      this.inFlight.delete(host);
    }
  }

  private async slot(): Promise<void> {
    while (this.free === 0) await new Promise<void>((go) => this.waiting.push(go));
    this.free -= 1;
  }
}

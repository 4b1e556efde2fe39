/** The time a session lives by; a test passes its own. */
export interface LinkClock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Runs `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Monotonic process time; its timers do not keep the process alive. */
export const processClock: LinkClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

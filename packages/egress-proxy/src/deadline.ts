import type { Cut } from './cut.ts';

/** The value of work that a deadline or a cancellation may cut short. */
export type Raced<T> = { readonly kind: 'done'; readonly value: T } | { readonly kind: 'deadline' } | { readonly kind: 'cancelled' };

/**
 * Waits for `work`, but at most `ms` and only until the cut. Work that settles later is handed to `late`, and its failure is
 * swallowed; a failure in time is thrown.
 */
export function raceDeadline<T>(work: Promise<T>, ms: number, cut: Cut, late: (value: T) => void = () => {}): Promise<Raced<T>> {
  return new Promise((resolve, reject) => {
    let open = true;
    const settle = (finish: () => void): void => {
      if (!open) return;
      open = false;
      clearTimeout(timer);
      cut.leave(onCut);
      finish();
    };
    const onCut = (): void => settle(() => resolve({ kind: 'cancelled' }));
    const timer = setTimeout(() => settle(() => resolve({ kind: 'deadline' })), ms);
    work.then(
      (value) => (open ? settle(() => resolve({ kind: 'done', value })) : late(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    cut.join(onCut);
  });
}

import type { OnProgress } from '@firecrew/rootfs';

/** Time between two lines about one step, in ms. */
const REPEAT_AFTER_MS = 5_000;

/** Says each new step as a line, and how far a long one is. `now` counts milliseconds. */
export function progressLines(say: (line: string) => void, now: () => number = () => performance.now()): OnProgress {
  let step = '';
  let saidAt = 0;
  return (progress) => {
    const isNew = progress.step !== step;
    if (!isNew && (progress.fraction === undefined || now() - saidAt < REPEAT_AFTER_MS)) return;
    step = progress.step;
    saidAt = now();
    const percent = isNew || progress.fraction === undefined ? '' : ` ${Math.floor(progress.fraction * 100)} %`;
    say(`${step} ...${percent}`);
  };
}

/** How one case of any file ended. */
export interface CaseResult {
  readonly id: string;
  readonly group: string;
  readonly state: 'exact' | 'safe' | 'unsafe' | 'not_run';
  /** How it ended, what was wrong about it, or why it was not run. */
  readonly detail: string;
}

/** What a reader says about one case. */
export type CaseAnswer = { readonly run: true; readonly ended: string } | { readonly run: false; readonly why: string };

/** Runs one case and judges its end; what throws is not safe. */
export async function judgeCase(
  { id, group, expect, acceptable }: { id: string; group: string; expect: string; acceptable: readonly string[] },
  run: () => Promise<CaseAnswer>,
): Promise<CaseResult> {
  try {
    const answer = await run();
    if (!answer.run) return { id, group, state: 'not_run', detail: answer.why };
    const { ended } = answer;
    if (ended === expect) return { id, group, state: 'exact', detail: ended };
    if (acceptable.includes(ended)) return { id, group, state: 'safe', detail: ended };
    return { id, group, state: 'unsafe', detail: `ended as ${ended}, wanted ${[expect, ...acceptable].join(' or ')}` };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id, group, state: 'unsafe', detail: message.split('\n')[0] ?? '' };
  }
}

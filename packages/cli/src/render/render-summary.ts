import type { RunEnded } from '../run/run-event.ts';
import { cleanLine } from './clean-text.ts';
import { describeOutcome } from './describe-outcome.ts';
import { describeReason } from './describe-reason.ts';
import type { EventLine } from './render-event.ts';

/** Hosts and folders that are named; the others are counted. */
const NAMED = 10;

/** What is known of the run beside its end. */
export interface SummaryFacts {
  readonly hasCheck: boolean;
  /** The repository the branch was written into, or undefined where it lies at the server. */
  readonly repository: string | undefined;
}

/** The end of a run for people: what came of it, where it is, and what to look at. */
export function renderSummary(end: RunEnded, facts: SummaryFacts): EventLine[] {
  const lines: EventLine[] = [headline(end)];
  const add = (tone: EventLine['tone'], text: string): void => void lines.push({ tone, text });
  if (end.branch !== null && end.commit !== null) {
    add('plain', `branch    ${cleanLine(end.branch)}${facts.repository === undefined ? '' : ` in ${cleanLine(facts.repository)}`}`);
    add('plain', `commit    ${end.commit}`);
  }
  if (end.diffstat !== null) {
    const { files, insertions, deletions } = end.diffstat;
    add('plain', `changes   ${files} ${files === 1 ? 'file' : 'files'}, +${insertions} -${deletions}`);
  }
  if (end.commit !== null) add(end.verified && facts.hasCheck ? 'good' : 'warn', `verified  ${verifiedText(end, facts.hasCheck)}`);
  if (end.isolation === 'none') add('warn', 'isolation none: install bubblewrap to keep agents from your files, processes and network');
  else if (end.isolation !== null) add('quiet', `isolation ${end.isolation}`);
  if (end.checkInputsChanged.length > 0)
    add('warn', `check_inputs_changed: the agent changed what the check runs: ${names(end.checkInputsChanged)}`);
  for (const item of end.denied.slice(0, NAMED)) {
    const port = item.port === null ? '' : `:${item.port}`;
    add('warn', `denied    ${cleanLine(item.host, 300)}${port}, ${item.connections} times (${describeReason(item.reason)})`);
  }
  if (end.denied.length > NAMED) add('warn', `denied    ${end.denied.length - NAMED} hosts more`);
  const unexpected = end.excluded.filter((item) => !item.ignored);
  if (unexpected.length > 0)
    add('warn', `left out though not ignored: ${names(unexpected.map((item) => `${item.path} (${item.files} files)`))}`);
  if (end.leftOut.length > 0)
    add('warn', `not in the commit: ${pathsWith(end.leftOut.map(({ path, reason }) => ({ path, why: describeReason(reason) })))}`);
  if (end.unfiltered.length > 0)
    add('warn', `committed without its filter: ${pathsWith(end.unfiltered.map(({ path, filter }) => ({ path, why: filter })))}`);
  for (const line of pushLines(end, facts)) lines.push(line);
  if (end.error !== null)
    add(
      'bad',
      `${end.error.code}: ${cleanLine(end.error.message)}${end.error.action === undefined ? '' : ` ${cleanLine(end.error.action)}`}`,
    );
  return lines;
}

/** How many paths, how many of each why, and the first ones by name. */
function pathsWith(all: readonly { readonly path: string; readonly why: string }[]): string {
  const counts = new Map<string, number>();
  for (const { why } of all) counts.set(why, (counts.get(why) ?? 0) + 1);
  const each = names([...counts].map(([why, count]) => `${count} ${why}`));
  return `${all.length} ${all.length === 1 ? 'path' : 'paths'} (${each}): ${names(all.map(({ path }) => path))}`;
}

function headline(end: RunEnded): EventLine {
  const id = end.missionId ?? 'the mission';
  if (end.missionState === 'completed') return { tone: 'good', text: `${id} completed` };
  const why = [describeOutcome(end.outcome), cleanLine(end.detail, 1_000)].filter((text) => text !== '').join(': ');
  if (end.missionState === 'cancelled') return { tone: 'warn', text: `${id} cancelled` };
  if (end.missionState === null) return { tone: 'bad', text: `${id} did not end` };
  return { tone: 'bad', text: `${id} failed: ${why}` };
}

function verifiedText(end: RunEnded, hasCheck: boolean): string {
  if (!hasCheck) return 'no: no check was given (--check)';
  return end.verified ? 'yes: the check passed in a fresh sandbox on exactly this tree' : 'no: the check did not pass on this tree';
}

function pushLines(end: RunEnded, facts: SummaryFacts): EventLine[] {
  const detail = end.pushDetail === '' ? '' : `: ${cleanLine(end.pushDetail, 1_000)}`;
  if (end.pushed === 'pushed' || end.pushed === 'up_to_date') return [{ tone: 'good', text: `pushed    yes${detail}` }];
  if (end.pushed === 'failed') {
    const again = facts.repository === undefined ? '' : `; again with: firecrew fetch ${end.missionId ?? 'ID'} --push REMOTE`;
    return [{ tone: 'bad', text: `pushed    no${detail}${again}` }];
  }
  if (end.pushed === 'awaiting_approval' || end.delivery === 'awaiting_approval') {
    const why =
      end.protectedPaths.length === 0 ? 'its changes could not be listed' : `protected paths changed (${names(end.protectedPaths)})`;
    return [{ tone: 'warn', text: `pushed    no: ${why}; after a look: firecrew approve ${end.missionId ?? 'ID'}` }];
  }
  return [];
}

function names(all: readonly string[]): string {
  const shown = all
    .slice(0, NAMED)
    .map((name) => cleanLine(name, 200))
    .join(', ');
  return all.length > NAMED ? `${shown} and ${all.length - NAMED} more` : shown;
}

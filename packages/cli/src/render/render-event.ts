import { BUDGET_DENIALS } from '@firecrew/egress-policy';
import type { EgressLine, MissionEvent, TurnEventBody } from '@firecrew/protocol';
import { cleanLine, cleanLines } from './clean-text.ts';
import { describeOutcome } from './describe-outcome.ts';
import { describeReason } from './describe-reason.ts';
import { renderWarning } from './render-warning.ts';

/** How a line is to be understood. */
export type Tone = 'plain' | 'good' | 'bad' | 'warn' | 'quiet';

/** One line about an event. */
export interface EventLine {
  readonly tone: Tone;
  readonly text: string;
}

/** Lines of a check's output that are shown. */
const CHECK_TAIL_LINES = 15;

const STEP_TEXT: Readonly<Record<string, string>> = {
  fetching: 'fetching the workspace',
  booting: 'starting the sandbox',
  injecting: 'placing files',
  setting_up: 'setting up',
  agent: 'agent works',
  collecting: 'collecting its files',
  destroying: 'removing the sandbox',
  verifying: 'checking in a fresh sandbox',
  finishing: 'finishing',
};

/** An event as lines for people; none for what they need not see. Text of guests is made safe. */
export function renderEvent(event: MissionEvent): EventLine[] {
  const { body } = event;
  switch (body.kind) {
    case 'mission.created':
    case 'mission.ended':
    case 'turn.accepted':
      return [];
    case 'mission.started':
      return one('plain', 'mission started');
    case 'mission.cancel_requested':
      return one('warn', 'cancelling: what the agent did so far is collected');
    case 'mission.retried':
      return one('plain', `phase is run again; ${body.reopened} later ${body.reopened === 1 ? 'phase' : 'phases'} reopened`);
    case 'phase.started':
      return one('plain', `phase ${body.position + 1} (${cleanLine(body.phaseKind)}) started`);
    case 'phase.completed':
      return one('good', 'phase completed');
    case 'phase.failed':
      return one('bad', withDetail(`phase failed: ${describeOutcome(body.outcome)}`, body.detail));
    case 'phase.skipped':
      return one('warn', 'phase skipped');
    case 'turn.waiting':
      return one('warn', withDetail(`waiting: ${body.reason.replaceAll('_', ' ')}`, body.detail));
    case 'turn.placed':
      return one('plain', `placed on node ${cleanLine(body.node)}`);
    case 'turn.ended':
      if (body.outcome.kind === 'completed') return [];
      return one(
        'bad',
        withDetail(
          `attempt ${body.attempt} ended: ${describeOutcome(body.outcome)}${body.retrying ? '; another is made' : ''}`,
          body.detail,
        ),
      );
    case 'delivery':
      return renderDelivery(body.delivery);
    case 'delivery.approved':
      return one('good', `delivery approved by ${cleanLine(body.by)}`);
    case 'notice':
      if (body.warning !== undefined) return one('warn', renderWarning(body.warning));
      return one(body.level === 'info' ? 'quiet' : 'warn', `${cleanLine(body.code)}: ${cleanLine(body.message)}`);
    case 'turn.event':
      return renderTurnEvent(body.body);
  }
}

function renderTurnEvent(body: TurnEventBody): EventLine[] {
  switch (body.kind) {
    case 'attempt.started':
      if (body.isolation === 'none')
        return one('warn', withDetail('nothing isolates this run from the host (install bubblewrap)', body.detail));
      return one('quiet', withDetail(`isolation: ${body.isolation}`, body.detail));
    case 'step': {
      const round = body.step === 'agent' && body.round > 0 ? `, round ${body.round}` : '';
      const text = `${STEP_TEXT[body.step] ?? body.step}${round}`;
      return one(body.step === 'agent' || body.step === 'verifying' || body.step === 'setting_up' ? 'plain' : 'quiet', text);
    }
    case 'setup.ended':
      return one(succeeded(body) ? 'good' : 'bad', `set-up ${ending(body)} after ${seconds(body.durationMs)}`);
    case 'agent.started':
    case 'checkpoint':
    case 'attempt.ended':
      return [];
    case 'agent.ended': {
      const left = body.survivors === 0 ? '' : `; ${body.survivors} of its processes were left and ended`;
      return one(succeeded(body) ? 'plain' : 'warn', `agent ${ending(body)} after ${seconds(body.durationMs)}${left}`);
    }
    case 'collected':
      return one(
        'quiet',
        `${body.tree.files} ${body.tree.files === 1 ? 'file' : 'files'} collected${body.changed ? '' : '; nothing was changed'}`,
      );
    case 'check.ended': {
      if (body.status === 'passed') return one('good', `check passed after ${seconds(body.durationMs)}`);
      const head = body.status === 'failed' ? `check failed: ${ending(body)}` : `check could not be run: ${ending(body)}`;
      return [
        ...one('bad', head),
        ...cleanLines(body.outputTail, CHECK_TAIL_LINES).map((text): EventLine => ({ tone: 'quiet', text: `  ${text}` })),
      ];
    }
    case 'gate':
      if (body.verdict === 'next_round')
        return one('warn', `round ${body.round + 1} follows (${cleanLine(body.reason).replaceAll('_', ' ')})`);
      if (body.verdict === 'satisfied') return one('good', `gate satisfied (${cleanLine(body.reason).replaceAll('_', ' ')})`);
      return one('bad', `gate ${body.verdict} (${cleanLine(body.reason).replaceAll('_', ' ')})`);
    case 'egress':
      return renderEgress(body.line);
    case 'link.refused':
      return one('warn', `a link to the sandbox was refused: ${cleanLine(body.reason)}`);
    case 'notice':
      // Of a model call that passed, people need see nothing: an agent makes many.
      if (body.call !== undefined && body.call.event !== 'refused') return [];
      return one(body.level === 'info' ? 'quiet' : 'warn', `${cleanLine(body.code)}: ${cleanLine(body.message)}`);
  }
}

function renderDelivery(delivery: Extract<MissionEvent['body'], { kind: 'delivery' }>['delivery']): EventLine[] {
  if (delivery.state === 'nothing_to_deliver' && delivery.baseCommit === null)
    return one('plain', 'no branch: the mission has no repository; its outputs: firecrew artifacts');
  if (delivery.state === 'nothing_to_deliver' && delivery.leftOut.length > 0)
    return one('warn', 'nothing to deliver: only files that stay out of a commit were changed');
  if (delivery.state === 'nothing_to_deliver') return one('warn', 'nothing to deliver: no file was changed');
  if (delivery.state === 'failed') return one('bad', withDetail('the delivery failed', delivery.diffError ?? delivery.pushDetail));
  const branch = cleanLine(delivery.branch ?? '-');
  if (delivery.state === 'awaiting_approval') {
    const paths = delivery.protectedPaths.map((path) => cleanLine(path, 200)).join(', ');
    return one(
      'warn',
      paths === '' ? withDetail(`${branch} awaits approval`, delivery.pushDetail) : `${branch} awaits approval: it changes ${paths}`,
    );
  }
  return one('good', `delivered ${branch}${delivery.verified ? '' : ' (not verified)'}`);
}

/** A refused connection. */
export function renderDenial(line: Pick<EgressLine, 'host' | 'port' | 'reason' | 'purpose'>): string {
  const where = `${cleanLine(line.host ?? 'an unnamed host', 300)}${line.port === null ? '' : `:${line.port}`}`;
  return `denied: ${where} for the ${line.purpose} (${describeReason(line.reason)})`;
}

/** People see refusals, and tunnels that a budget cut; all else is in the audit. */
function renderEgress(line: EgressLine): EventLine[] {
  if (line.event === 'refused') return one('warn', renderDenial(line));
  const isCut = line.event === 'end' && BUDGET_DENIALS.some((reason) => reason === line.reason);
  return isCut ? one('warn', renderDenial(line).replace(/^denied/, 'cut')) : [];
}

function one(tone: Tone, text: string): EventLine[] {
  return [{ tone, text }];
}

function withDetail(text: string, detail: string): string {
  const more = cleanLine(detail, 1_000);
  return more === '' ? text : `${text}: ${more}`;
}

interface Exit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly timedOut: boolean;
}

function succeeded(exit: Exit): boolean {
  return exit.exitCode === 0 && !exit.timedOut;
}

function ending(exit: Exit): string {
  if (exit.timedOut) return 'ran out of time';
  if (exit.signal !== null) return `was ended by ${cleanLine(exit.signal)}`;
  return exit.exitCode === null ? 'ended without an exit code' : `exited with ${exit.exitCode}`;
}

/** A duration for people. */
export function seconds(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const whole = Math.round(ms / 1000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

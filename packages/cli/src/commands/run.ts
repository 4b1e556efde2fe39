import { messageOf } from '@firecrew/base';
import type { MissionView } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { describeError, errorBody } from '../describe-error.ts';
import { EXIT, exitCodeOf } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { renderSummary } from '../render/render-summary.ts';
import { renderWarning } from '../render/render-warning.ts';
import { paint, RunScreen } from '../render/run-screen.ts';
import { bringBack } from '../run/bring-back.ts';
import { followRun } from '../run/follow-run.ts';
import { type CallerPlace, egressRequest, type PreparedMission, prepareMission, uploadMission } from '../run/prepare-mission.ts';
import { rememberMission } from '../run/remember-mission.ts';
import { type RunEnded, runEndedSchema } from '../run/run-event.ts';
import { type BroughtBack, endOfRun, newFacts, type RunFacts } from '../run/run-facts.ts';
import { type RunOptions, readRunOptions } from '../run/run-options.ts';
import { chooseSeat } from '../seats/choose-seat.ts';
import { type CommandContext, type Connection, connectServer, homeOf, settingsOf } from './context.ts';
import { watchServices } from './watch-services.ts';

/** `firecrew run`: one mission from task to branch. */
export async function runCommand(context: CommandContext, raw: Readonly<Record<string, unknown>>): Promise<number> {
  const json = raw.json === true;
  try {
    const options = readRunOptions(raw, context.env);
    const home = homeOf(context);
    const place: CallerPlace = { cwd: context.cwd, env: context.env, scratch: home.paths.client };
    const prepared = await prepareMission(options, place);
    const { out } = context;
    const say = (text: string): void => (json ? out.note(text) : out.line(text));
    for (const note of prepared.notes) say(json ? note : paint(out, { tone: 'quiet', text: note }));
    const connection = await connectServer(context);
    try {
      return await runMission(context, prepared, place, connection);
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (!json) throw error;
    // Programs read the last line, whatever happened.
    const nothing: BroughtBack = { branch: null, pushed: 'not_wanted', pushDetail: '' };
    const end = { ...endOfRun(newFacts(''), nothing, errorBody(error)), missionId: null, exitCode: exitCodeOf(error) };
    context.out.line(JSON.stringify(runEndedSchema.parse(end)));
    for (const line of describeError(error)) context.out.note(line);
    return end.exitCode;
  }
}

async function runMission(context: CommandContext, prepared: PreparedMission, place: CallerPlace, connection: Connection): Promise<number> {
  const { options } = prepared;
  const { home } = connection;
  const client = await clientOf(context, options, connection);
  // What is refused for the policy, or its backend, is refused before anything leaves this machine.
  const { backend, learn } = options;
  if (options.strictPolicy || learn !== undefined || backend !== undefined)
    await client.askPolicy({
      egress: egressRequest(prepared),
      ...(backend === undefined ? {} : { backend }),
      ...(learn === undefined ? {} : { learn: { ...learn } }),
    });
  const mission = await client.createMission(await uploadMission(prepared, client, place));
  if (prepared.tree !== undefined) rememberMission(home, mission.id, prepared.tree.repository.root);
  if (!options.wait) return announce(context, options, mission);
  if (!options.json) context.out.line(`mission   ${mission.id}  ${cleanLine(mission.title)}`);
  const followed = await followUntilEnd(context, options, connection, mission.id);
  if (followed === 'left') {
    context.out.note(`${mission.id} goes on; come back with: firecrew logs ${mission.id} --follow, then firecrew fetch ${mission.id}`);
    return EXIT.detached;
  }
  const { back, failure } = await takeHome(context, prepared, connection, followed);
  const end = endOfRun(followed, back, failure);
  if (options.json) context.out.line(JSON.stringify(runEndedSchema.parse(end)));
  else {
    const facts = { hasCheck: prepared.phases.at(-1)?.doneWhenCheck !== undefined, repository: prepared.tree?.repository.root };
    for (const line of renderSummary(end, facts)) context.out.line(paint(context.out, line));
    if (options.learn !== undefined) context.out.line(`learned   firecrew policy learn ${mission.id}`);
  }
  return end.exitCode;
}

/** The client that makes the mission: that of the seat where one was named. Following it and bringing it home is the caller's own. */
async function clientOf(context: CommandContext, { seat, json }: RunOptions, connection: Connection): Promise<FirecrewClient> {
  if (seat === undefined) return connection.client;
  const fallback = settingsOf(context, connection.home).seatFallback ?? 'never';
  const { client, note } = await chooseSeat(context, connection, { role: seat, fallback });
  if (json) context.out.note(note);
  else context.out.line(`seat      ${note}`);
  return client;
}

function announce(context: CommandContext, options: RunOptions, mission: MissionView): number {
  if (options.json) context.out.line(JSON.stringify(mission));
  else {
    context.out.line(`mission   ${mission.id}  ${cleanLine(mission.title)}`);
    for (const warning of mission.warnings ?? []) context.out.line(paint(context.out, { tone: 'warn', text: renderWarning(warning) }));
    context.out.line(`follow    firecrew logs ${mission.id} --follow`);
    context.out.line(`fetch     firecrew fetch ${mission.id}`);
  }
  return EXIT.completed;
}

/** Follows the mission; the first Ctrl-C cancels it, the second leaves it. */
async function followUntilEnd(
  context: CommandContext,
  options: RunOptions,
  connection: Connection,
  missionId: string,
): Promise<RunFacts | 'left'> {
  const { out } = context;
  const leave = new AbortController();
  const screen = new RunScreen(out);
  const say = (text: string): void => (options.json ? out.note(text) : screen.say({ tone: 'warn', text }));
  let interrupts = 0;
  const onSignal = (): void => {
    interrupts += 1;
    if (interrupts > 1) {
      leave.abort();
      return;
    }
    say('cancelling; press Ctrl-C again to leave the mission running');
    connection.client.cancel(missionId).catch((error: unknown) => say(`could not cancel: ${messageOf(error)}`));
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  const watch = watchServices(context, connection.home);
  if (!options.json) screen.start();
  try {
    const facts = await followRun(
      connection.client,
      missionId,
      {
        onEvent: (event) => (options.json ? out.line(JSON.stringify(event)) : screen.event(event)),
        onLog: options.json ? undefined : (chunk) => screen.log(chunk),
        onReconnect: () => say('the server does not answer; waiting for it'),
      },
      leave.signal,
    );
    return leave.signal.aborted ? 'left' : facts;
  } finally {
    screen.stop();
    await watch.stop();
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
  }
}

/** Writes the delivered branch into the caller's repository. A failure there is told and does not hide how the mission ended. */
async function takeHome(
  context: CommandContext,
  prepared: PreparedMission,
  connection: Connection,
  facts: RunFacts,
): Promise<{ back: BroughtBack; failure: RunEnded['error'] }> {
  const delivery = facts.end?.delivery ?? null;
  const none: BroughtBack = { branch: null, pushed: 'not_wanted', pushDetail: '' };
  if (prepared.tree === undefined) {
    const pushed = delivery === null || delivery.pushed === 'not_wanted' ? 'not_wanted' : delivery.pushed;
    return { back: { ...none, pushed, pushDetail: delivery?.pushDetail ?? '' }, failure: null };
  }
  if (delivery === null || delivery.commit === null) return { back: none, failure: null };
  const { push, pushDirty } = prepared.options;
  const scratch = connection.home.paths.client;
  try {
    const brought = await bringBack(connection.client, facts.missionId, prepared.tree.repository, scratch, {
      push,
      pushDirty,
      env: context.env,
    });
    return { back: { branch: brought.written.branch, pushed: brought.pushed, pushDetail: brought.pushDetail }, failure: null };
  } catch (error) {
    const body = errorBody(error);
    const action = body.action ?? `Try again with: firecrew fetch ${facts.missionId}`;
    return { back: { ...none, pushed: push === undefined ? 'not_wanted' : 'failed' }, failure: { ...body, action } };
  }
}

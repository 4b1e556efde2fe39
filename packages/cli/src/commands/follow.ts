import type { LogChunk, MissionEvent } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import { UsageError } from '../exit-codes.ts';
import { LogLines } from '../render/log-lines.ts';
import { renderEvent } from '../render/render-event.ts';
import { paint } from '../render/run-screen.ts';
import { findMission } from '../run/find-mission.ts';
import type { CommandContext } from './context.ts';
import { withServer } from './missions.ts';
import { watchServices } from './watch-services.ts';

/** `firecrew logs ID`: on a terminal without control characters, through a pipe as the agent wrote it. */
export async function logsCommand(
  context: CommandContext,
  id: string,
  options: { readonly follow: boolean; readonly json: boolean },
): Promise<number> {
  return await withServer(context, async ({ client, home }) => {
    const missionId = await findMission(client, id);
    const show = logPrinter(context, options.json);
    if (options.follow) {
      const watch = watchServices(context, home);
      try {
        for await (const chunk of client.logs(missionId)) show.chunk(chunk);
      } finally {
        await watch.stop();
      }
    } else for (const chunk of await client.listLogs(missionId)) show.chunk(chunk);
    show.end();
    return 0;
  });
}

function logPrinter(context: CommandContext, json: boolean): { chunk(chunk: LogChunk): void; end(): void } {
  const { out } = context;
  if (json) return { chunk: (chunk) => out.line(JSON.stringify(chunk)), end: () => undefined };
  const all = new Map<string, LogLines>();
  return {
    chunk: (chunk) => {
      const key = `${chunk.turnId}.${chunk.attempt}`;
      const lines = all.get(key) ?? new LogLines();
      all.set(key, lines);
      for (const line of lines.push(Buffer.from(chunk.data, 'base64'))) out.line(line);
    },
    end: () => {
      for (const lines of all.values()) for (const line of lines.end()) out.line(line);
    },
  };
}

/** `firecrew events ID` */
export async function eventsCommand(
  context: CommandContext,
  id: string,
  options: { readonly follow: boolean; readonly after: string; readonly json: boolean },
): Promise<number> {
  if (!/^\d{1,9}$/.test(options.after)) throw new UsageError('usage_wrong', `--after ${options.after} is no sequence number`);
  const after = Number(options.after);
  return await withServer(context, async ({ client, home }) => {
    const missionId = await findMission(client, id);
    const show = (event: MissionEvent): void => {
      if (options.json) context.out.line(JSON.stringify(event));
      else
        for (const line of renderEvent(event))
          context.out.line(`${String(event.seq).padStart(5)}  ${event.at.slice(11, 19)}  ${paint(context.out, line)}`);
    };
    if (!options.follow) {
      for await (const event of allEvents(client, missionId, after)) show(event);
      return 0;
    }
    const watch = watchServices(context, home);
    try {
      for await (const event of client.events(missionId, { after })) show(event);
    } finally {
      await watch.stop();
    }
    return 0;
  });
}

/** All events of a mission that are there now, after the sequence number `after`. */
export async function* allEvents(client: FirecrewClient, missionId: string, after: number): AsyncGenerator<MissionEvent> {
  for (;;) {
    const page = await client.listEvents(missionId, after);
    if (page.length === 0) return;
    yield* page;
    after = page.at(-1)?.seq ?? after;
  }
}

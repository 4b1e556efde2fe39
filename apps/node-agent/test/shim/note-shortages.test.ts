import type { ExecEnd, TurnEventBody } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { noteShortages, type ShortageContext } from '../../src/shim/note-shortages.ts';

const FAILED: ExecEnd = { kind: 'exited', exitCode: 137, signal: null, outputBytes: 0, droppedBytes: 0, survivors: 0 };

/** What is told and remembered of a command that ended so. */
function note(end: Partial<ExecEnd>, isolation: 'vm' | 'bubblewrap' = 'vm') {
  const told: string[] = [];
  const context: ShortageContext = {
    spec: { demand: { memoryMib: 512, diskMib: 1024, vcpus: 1 } },
    state: { isolation },
    events: { add: (body: TurnEventBody) => void (body.kind === 'notice' && told.push(`${body.level} ${body.code}: ${body.message}`)) },
  };
  const exhausted = noteShortages(context, 'the agent', { ...FAILED, ...end });
  return { told, exhausted };
}

const MEMORY = "memory ran out while the agent ran: the guest's kernel killed 2 of its processes (it has 512 MiB)";
const DISK = 'a disk was full when the agent ended: 4096 bytes were left (of 1024 MiB)';

describe('what a command of a guest ran out of', () => {
  it('is told, and given as what a failed one failed for', () => {
    const memory = note({ memoryKills: 2, diskRoomBytes: 10_000_000 });
    expect(memory).toEqual({
      told: [`warning guest_out_of_memory: ${MEMORY}`],
      exhausted: { reason: 'guest_out_of_memory', message: MEMORY },
    });
    const disk = note({ memoryKills: 0, diskRoomBytes: 4096 }, 'bubblewrap');
    expect(disk).toEqual({ told: [`warning guest_disk_full: ${DISK}`], exhausted: { reason: 'guest_disk_full', message: DISK } });
  });

  it('is told of one that succeeded, and is no reason for anything', () => {
    expect(note({ exitCode: 0, diskRoomBytes: 4096 })).toEqual({ told: [`warning guest_disk_full: ${DISK}`], exhausted: null });
  });

  it('is nothing where its kernel is that of the host, and where an older guest agent says nothing', () => {
    expect(note({ memoryKills: 2 }, 'bubblewrap')).toEqual({ told: [], exhausted: null });
    expect(note({})).toEqual({ told: [], exhausted: null });
  });
});

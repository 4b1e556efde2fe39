import { CodedError } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { describe, expect, it } from 'vitest';
import type { GuestEndpoint } from '../../src/guest-endpoint/guest-endpoint.ts';
import type { VmExit } from '../../src/index.ts';
import { ConsoleTail } from '../../src/machine/console-tail.ts';
import type { BootedMachine } from '../../src/machine/machine.ts';
import { stopMachine } from '../../src/machine/stop-machine.ts';

const TIMES = { agentMs: 20, initMs: 20, quitMs: 20 };

type Answer = 'ends' | 'stays' | 'refuses' | 'absent';
interface Answers {
  readonly agent: Answer;
  readonly init: Answer;
  readonly quit: Answer;
}

/** A machine whose ends answer as they are told to, and what was asked of it. */
function machineOf({ agent, init, quit }: Answers): { readonly booted: BootedMachine; readonly asked: string[] } {
  const asked: string[] = [];
  const exited = Promise.withResolvers<VmExit>();
  const take = (name: string, answer: Answer) => async (): Promise<void> => {
    asked.push(name);
    if (answer === 'refuses') throw new CodedError('qmp_failed', `${name} is not done`);
    if (answer === 'ends') exited.resolve({ code: 0, signal: null });
  };
  const open = () => {
    void take('agent', agent)().catch(() => undefined);
    const peerHead = agent === 'refuses' ? { ok: false, code: 'shutting_down', message: 'no' } : { ok: true };
    return { end: () => undefined, resume: () => undefined, destroy: () => undefined, peerHead: Promise.resolve(peerHead) };
  };
  // casts: what of a session and an endpoint a stop uses
  const liveSession = agent === 'absent' ? undefined : ({ open } as unknown as LinkSession);
  const endpoint = { liveSession } as unknown as GuestEndpoint;
  const machine = {
    console: new ConsoleTail(),
    exited: exited.promise,
    expectEnd: () => undefined,
    ...(init === 'absent' ? {} : { askToEnd: take('init', init) }),
    ...(quit === 'absent' ? {} : { askToQuit: take('quit', quit) }),
    kill: take('kill', 'ends'),
    release: async () => [],
  };
  return { booted: { endpoint, machine }, asked };
}

describe('a machine', () => {
  it.each<readonly [string, Answers, readonly string[]]>([
    ['its agent', { agent: 'ends', init: 'ends', quit: 'ends' }, ['agent']],
    ['its pid 1, where there is no session', { agent: 'absent', init: 'ends', quit: 'ends' }, ['init']],
    ['its pid 1, where the agent takes the wish and stays', { agent: 'stays', init: 'ends', quit: 'ends' }, ['agent', 'init']],
    ['its pid 1, where the agent refuses', { agent: 'refuses', init: 'ends', quit: 'ends' }, ['agent', 'init']],
    ['its VMM, where the guest stays', { agent: 'stays', init: 'stays', quit: 'ends' }, ['agent', 'init', 'quit']],
    ['its VMM, where there are no keys', { agent: 'absent', init: 'absent', quit: 'ends' }, ['quit']],
    ['its VMM, where the keys are refused', { agent: 'absent', init: 'refuses', quit: 'ends' }, ['init', 'quit']],
    ['force, where nothing helps', { agent: 'stays', init: 'stays', quit: 'stays' }, ['agent', 'init', 'quit', 'kill']],
    ['force, where nothing can be asked', { agent: 'absent', init: 'absent', quit: 'absent' }, ['kill']],
    ['force, where all is refused', { agent: 'refuses', init: 'refuses', quit: 'refuses' }, ['agent', 'init', 'quit', 'kill']],
  ])('is ended by %s', async (_by, answers, asks) => {
    const { booted, asked } = machineOf(answers);
    await stopMachine(booted, TIMES);
    expect(asked).toEqual(asks);
  });

  it('that is gone is asked nothing', async () => {
    const { booted, asked } = machineOf({ agent: 'ends', init: 'ends', quit: 'ends' });
    await booted.machine.kill();
    await stopMachine(booted, TIMES);
    expect(asked).toEqual(['kill']);
  });
});

import { rm } from 'node:fs/promises';
import { messageOf } from '@firecrew/base';
import type { Vm } from '@firecrew/vmm';
import type { AttemptContext } from './attempt-context.ts';
import { collectTree } from './collect-tree.ts';

/**
 * Takes a snapshot of the workspace every now and then while the agent works, marked as unchecked: what a lost host loses is the
 * time since the last one. A checkpoint that cannot be taken is told and tried again.
 */
export function takeCheckpoints(context: AttemptContext, vm: Vm, round: number): { stop(): Promise<void> } {
  const { spec, state, events } = context;
  let running: Promise<void> | undefined;
  let count = 0;
  const take = async (): Promise<void> => {
    count += 1;
    try {
      const tree = await collectTree(context, vm, `checkpoint-${round}-${count}`, round, false);
      const old = state.checkpoint ? state.tree : null;
      state.tree = tree;
      state.checkpoint = true;
      events.add({ kind: 'checkpoint', tree: tree.captured });
      if (old !== null && old.file !== tree.file) await rm(old.file, { force: true });
    } catch (error) {
      events.add({ kind: 'notice', level: 'warning', code: 'checkpoint_failed', message: messageOf(error).slice(0, 1000) });
    }
  };
  const timer = setInterval(() => {
    running ??= take().finally(() => {
      running = undefined;
    });
  }, spec.limits.checkpointEveryMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

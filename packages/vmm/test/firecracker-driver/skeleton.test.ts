import { afterAll, beforeAll, expect, it } from 'vitest';
import { shell, withVm } from '../../src/testing/index.ts';
import { FirecrackerRig } from './rig.ts';

let rig: FirecrackerRig;
beforeAll(async () => {
  rig = await FirecrackerRig.make();
});
afterAll(() => rig.remove());

it('boots', async () => {
  const host = await rig.host();
  const driverRig = { driver: host.driver, newSpec: async () => host.newSpec(), broken: () => Promise.reject(new Error('x')) };
  await withVm(driverRig, async ({ vm }) => {
    expect((await shell(vm, 'echo hello; id -u; pwd')).output).toBe('hello\n1000\n/workspace\n');
  });
});

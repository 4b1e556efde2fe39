import type { FleetView } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { renderFleet, renderVms } from '../src/commands/fleet.ts';

const NODE: FleetView['nodes'][number] = {
  id: 'nod_0000000000000000',
  name: 'builder',
  online: true,
  draining: false,
  healthAgeMs: 1,
  health: null,
  capabilities: {
    drivers: [{ driver: 'process', isolation: 'bubblewrap', backends: ['command'], detail: '' }],
    unavailable: [{ driver: 'qemu', detail: 'the store has nothing named kernel; it is being fetched\u001b[2J from the server' }],
    modelRoutes: [{ backend: 'command', format: 'openai_chat\u001b[2J' }],
    kvm: false,
    cpus: 2,
    platform: 'linux',
    agentVersion: '1',
  },
  verdict: { fit: true, freeSlots: 1, committed: 0, line: '1 free' },
};

describe('the fleet', () => {
  it('says which drivers a node cannot use, and why, with nothing that moves the cursor', () => {
    const lines = renderFleet({ freeSlots: 1, nodes: [NODE] });
    expect(lines.find((line) => line.startsWith('builder cannot'))).toMatch(
      /^builder cannot use qemu: the store has nothing named kernel; it is being fetched.{0,8} from the server$/,
    );
    expect(lines.join('')).not.toContain('\u001b');
  });

  it('says which model routes a node has, or that it has none, or that it does not say', () => {
    const cell = (modelRoutes: NonNullable<typeof NODE.capabilities>['modelRoutes']) => {
      const { modelRoutes: _routes, ...others } = NODE.capabilities ?? { drivers: [], kvm: false, cpus: 1, platform: '', agentVersion: '' };
      const capabilities = modelRoutes === undefined ? others : { ...others, modelRoutes };
      return renderFleet({ freeSlots: 1, nodes: [{ ...NODE, capabilities }] }).find((line) => line.startsWith('builder '));
    };
    expect(cell([{ backend: 'command', format: 'openai_chat' }])).toMatch(/process +command \(openai_chat\) +1 free/);
    expect(cell([])).toMatch(/process +- +1 free/);
    expect(cell(undefined)).toMatch(/process +\? +1 free/);
  });

  it('says nothing more of a node that can use all, or is of an earlier version', () => {
    const { unavailable: _none, ...earlier } = NODE.capabilities ?? { drivers: [], kvm: false, cpus: 1, platform: '', agentVersion: '' };
    const lines = renderFleet({ freeSlots: 1, nodes: [{ ...NODE, capabilities: earlier }] });
    expect(lines.filter((line) => line.includes('cannot use'))).toEqual([]);
  });
});

describe('the VMs on the nodes', () => {
  const vm = { turnId: 'trn_0000000000000001', attempt: 2, name: '1v', kind: 'check' as const };
  const demand = { driver: 'qemu' as const, memoryMib: 1024, diskMib: 2048 };

  it('are listed with what each is for, and a node that says nothing, or cannot, is not taken for an empty one', () => {
    const lines = renderVms([
      {
        ...NODE,
        vms: {
          status: 'known',
          vms: [
            { ...vm, demand },
            { ...vm, name: '1a\u001b[2J', kind: 'rescue', demand: null },
          ],
        },
      },
      { ...NODE, name: 'old' },
      { ...NODE, name: 'mute', vms: { status: 'unknown', error: 'EIO\u001b[2J: the disk' } },
    ]);
    expect(lines.find((line) => line.includes(' 1v '))).toMatch(/^builder +trn_0000000000000001\.2 +1v +check +qemu +1024 MiB$/);
    expect(lines.find((line) => line.includes(' rescue '))).toMatch(/ \? +\?$/);
    expect(lines.slice(-2)).toEqual(['old has not said', expect.stringMatching(/^mute cannot say: EIO.*: the disk$/)]);
    expect(lines.join('')).not.toContain('\u001b');
    expect(renderVms([{ ...NODE, vms: { status: 'known', vms: [] } }])).toEqual(['no VMs']);
  });
});

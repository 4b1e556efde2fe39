import type { FleetView } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { renderFleet } from '../src/commands/fleet.ts';

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

import { describe, expect, it } from 'vitest';
import {
  buildTopology,
  findKind,
  MAX_MEMBERS,
  planSteps,
  ROSTER_REASONS,
  renderDot,
  renderMermaid,
  requiredBackends,
  soloTopology,
  TOPOLOGY_KINDS,
  TOPOLOGY_REASONS,
  type TopologyKind,
  topologyKinds,
  validateRoster,
  validateTopology,
} from '../src/index.ts';

const roles = (count: number): string[] => Array.from({ length: count }, (_, at) => `role ${at}`);
const built = (kind: TopologyKind, count: number) => {
  const result = buildTopology(kind, roles(count));
  if (result.verdict === 'refused') throw new Error(result.message);
  return result.topology;
};

describe('the catalogue', () => {
  it.each(topologyKinds().flatMap((entry) => [entry.minMembers, entry.maxMembers].map((members) => ({ kind: entry.kind, members }))))(
    '$kind of $members members builds, validates, and survives JSON',
    ({ kind, members }) => {
      const topology = built(kind, members);
      expect(validateTopology(JSON.parse(JSON.stringify(topology)))).toEqual({ verdict: 'valid', topology });
      expect(planSteps(topology).map((step) => step.nodeId)).toEqual(roles(members).map((_, at) => `n${at}`));
    },
  );

  it.each(topologyKinds())('$kind refuses a member too few and one too many', ({ kind, minMembers, maxMembers }) => {
    for (const count of [minMembers - 1, maxMembers + 1])
      expect(buildTopology(kind, roles(count))).toMatchObject({ verdict: 'refused', reason: 'member_count' });
  });

  it('matches a kind without regard to case and outer spaces, and knows no default', () => {
    expect(findKind('  Pipeline\n')?.kind).toBe('pipeline');
    expect(findKind('')).toBeUndefined();
    expect(buildTopology('swarm', roles(2))).toMatchObject({ reason: 'unknown_kind', message: expect.stringContaining('solo, pipeline') });
  });

  it('has the shapes that each kind promises', () => {
    const edges = (kind: TopologyKind, count: number) => built(kind, count).edges.map((edge) => `${edge.from}${edge.to}`);
    expect(edges('pipeline', 3)).toEqual(['n0n1', 'n1n2']);
    expect(edges('review', 3)).toEqual(['n0n1', 'n0n2']);
    expect(edges('fan_out', 4)).toEqual(['n0n1', 'n1n3', 'n0n2', 'n2n3']);
    expect(edges('panel', 3)).toEqual(['n0n2', 'n1n2']);
    expect(edges('relay', 3)).toEqual(['n0n1', 'n0n2', 'n1n2']);
  });

  it('gives a single turn by default', () => {
    expect(soloTopology()).toEqual({ kind: 'solo', nodes: [{ id: 'n0', role: 'engineer' }], edges: [] });
    expect(soloTopology({ role: 'coder', backend: 'command' }).nodes).toEqual([{ id: 'n0', role: 'coder', backend: 'command' }]);
    expect(() => soloTopology(' ')).toThrow(expect.objectContaining({ code: 'topology_invalid' }));
  });

  it('carries no backend for a member that has none or a blank one', () => {
    const result = buildTopology('pipeline', [
      { role: 'a', backend: '  ' },
      { role: 'b', backend: ' codex ' },
    ]);
    expect(result).toMatchObject({
      topology: {
        nodes: [
          { id: 'n0', role: 'a' },
          { id: 'n1', role: 'b', backend: 'codex' },
        ],
      },
    });
    expect(result.verdict === 'built' && Object.keys(result.topology.nodes[0] ?? {})).toEqual(['id', 'role']);
    expect(result.verdict === 'built' && requiredBackends(result.topology)).toEqual(['codex']);
  });
});

describe('a stored graph', () => {
  const node = (id: string, over: object = {}) => ({ id, role: 'r', ...over });
  const graph = (over: object) => ({ kind: 'relay', nodes: [node('n0'), node('n1')], edges: [], ...over });

  it.each<[string, unknown]>([
    ['not_an_object', null],
    ['not_an_object', []],
    ['unknown_key', graph({ extra: 1 })],
    ['unknown_kind', graph({ kind: 'swarm' })],
    ['unknown_kind', graph({ kind: 7 })],
    ['no_nodes', graph({ nodes: [] })],
    ['no_nodes', graph({ nodes: 'n0' })],
    ['too_many_nodes', graph({ nodes: Array.from({ length: MAX_MEMBERS + 1 }, (_, at) => node(`n${at}`)) })],
    ['bad_node_id', graph({ nodes: [node('x')] })],
    ['bad_node_id', graph({ nodes: [node('n01')] })],
    ['duplicate_node', graph({ nodes: [node('n0'), node('n0')] })],
    ['blank_role', graph({ nodes: [node('n0', { role: '  ' })] })],
    ['bad_field', graph({ nodes: [node('n0', { role: 'a\nb' })] })],
    ['bad_field', graph({ nodes: [node('n0', { backend: '' })] })],
    ['bad_field', graph({ nodes: [node('n0', { model: 'x'.repeat(129) })] })],
    ['unknown_key', graph({ nodes: [node('n0', { Backend: 'x' })] })],
    ['bad_field', graph({ edges: {} })],
    ['dangling_edge', graph({ edges: [{ from: 'n0', to: 'n9' }] })],
    ['self_edge', graph({ edges: [{ from: 'n0', to: 'n0' }] })],
    [
      'duplicate_edge',
      graph({
        edges: [
          { from: 'n0', to: 'n1' },
          { from: 'n0', to: 'n1' },
        ],
      }),
    ],
    [
      'cycle',
      graph({
        edges: [
          { from: 'n0', to: 'n1' },
          { from: 'n1', to: 'n0' },
        ],
      }),
    ],
  ])('is refused by %s: %j', (reason, document) => {
    expect(validateTopology(document)).toMatchObject({ verdict: 'refused', reason });
  });

  it('with a cycle has no steps', () => {
    const edges = [{ from: 'n0', to: 'n0' }];
    expect(() => planSteps({ kind: 'solo', nodes: [{ id: 'n0', role: 'r' }], edges })).toThrow(
      expect.objectContaining({ code: 'topology_invalid' }),
    );
  });
});

describe('a roster', () => {
  const member = (over: object = {}) => ({ role: 'coder', ...over });
  const check = (
    topologyKind: string,
    members: readonly { role: string; backend?: string }[],
    availableBackends = ['claude', 'codex'],
    missionBackend?: string,
  ) => validateRoster({ topologyKind, members }, { availableBackends, missionBackend });

  it.each<[string, string, readonly { role: string; backend?: string }[]]>([
    ['roster_empty', 'nonsense', []],
    ['roster_too_many_members', 'nonsense', Array.from({ length: 7 }, () => ({ role: '' }))],
    ['roster_unknown_topology', 'nonsense', [{ role: '' }]],
    ['roster_blank_role', 'solo', [{ role: ' ', backend: 'nope' }]],
    ['roster_unknown_backend', 'solo', [{ role: 'a', backend: 'nope' }]],
    ['roster_unbuildable', 'solo', [{ role: 'a' }, { role: 'b' }]],
  ])('is refused by %s, in this order', (reason, kind, members) => {
    expect(check(kind, members)).toMatchObject({ verdict: 'refused', reason });
  });

  it('names what is available, or none', () => {
    expect(check('solo', [member({ backend: 'nope' })])).toMatchObject({ message: expect.stringContaining('claude, codex') });
    expect(check('solo', [member({ backend: 'nope' })], [])).toMatchObject({ message: expect.stringContaining('none') });
  });

  it("takes a blank backend as the mission's, and checks that one too", () => {
    expect(check('solo', [member({ backend: '  ' })], ['claude'], 'claude')).toMatchObject({
      verdict: 'valid',
      topology: { nodes: [{ id: 'n0', role: 'coder' }] },
    });
    expect(check('solo', [member()], ['claude'], 'gone')).toMatchObject({ reason: 'roster_unknown_backend' });
  });

  it('takes 6 members and puts each backend where the executor reads it', () => {
    const members = Array.from({ length: 6 }, (_, at) => member({ backend: at % 2 === 0 ? 'claude' : 'codex' }));
    const result = check('PIPELINE', members);
    expect(result.verdict === 'valid' && validateTopology(result.topology)).toMatchObject({ verdict: 'valid' });
    expect(result.verdict === 'valid' && planSteps(result.topology).map((step) => step.backend)).toEqual([
      'claude',
      'codex',
      'claude',
      'codex',
      'claude',
      'codex',
    ]);
  });
});

describe('drawings', () => {
  const topology = (() => {
    const result = buildTopology('pipeline', [{ role: 'a "quoted" \\ role]', backend: 'codex' }, 'end --> x']);
    if (result.verdict === 'refused') throw new Error(result.message);
    return result.topology;
  })();

  it('in DOT keep every role inside its label', () => {
    expect(renderDot(topology)).toBe(
      'digraph topology {\n  rankdir=LR;\n  n0 [label="a \\"quoted\\" \\\\ role] (codex)"];\n  n1 [label="end --> x"];\n  n0 -> n1;\n}\n',
    );
  });

  it('in Mermaid write every sign of markup as an entity', () => {
    expect(renderMermaid(topology)).toBe(
      'flowchart LR\n  n0["a #34;quoted#34; #92; role#93; (codex)"]\n  n1["end --#62; x"]\n  n0 --> n1\n',
    );
  });
});

describe('what others can see', () => {
  it('is fixed: kinds, reasons and limits', () => {
    expect(TOPOLOGY_KINDS).toEqual(['solo', 'pipeline', 'review', 'fan_out', 'panel', 'relay']);
    expect(MAX_MEMBERS).toBe(6);
    expect(ROSTER_REASONS).toHaveLength(6);
    expect(TOPOLOGY_REASONS).toHaveLength(16);
  });
});

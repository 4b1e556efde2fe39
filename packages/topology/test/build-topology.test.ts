import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  buildTopology,
  findKind,
  MAX_MEMBERS,
  MAX_PARALLEL,
  MAX_ROUNDS,
  MAX_STEPS,
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
      const turns = topology.nodes.flatMap((node) => Array.from({ length: node.turns ?? 1 }, (_, at) => `${node.id} ${at + 1}`));
      expect(
        planSteps(topology)
          .map((step) => `${step.nodeId} ${step.round}`)
          .sort(),
      ).toEqual(turns.sort());
      expect(turns.length).toBeLessThanOrEqual(MAX_STEPS);
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

  it.each(topologyKinds())('$kind refuses a round too few and one too many', ({ kind, minMembers, minRounds, maxRounds }) => {
    for (const rounds of [minRounds - 1, maxRounds + 1, 1.5])
      expect(buildTopology(kind, roles(minMembers), { rounds })).toMatchObject({ verdict: 'refused', reason: 'round_count' });
    expect(buildTopology(kind, roles(minMembers), { rounds: maxRounds })).toMatchObject({ verdict: 'built' });
  });

  it('has no shape of more turns than a run may have', () => {
    for (const { kind, maxMembers, maxRounds } of topologyKinds())
      expect(buildTopology(kind, roles(maxMembers), { rounds: maxRounds })).toMatchObject({ verdict: 'built' });
  });

  it.each<[TopologyKind, number, number | undefined, string]>([
    ['solo', 1, undefined, 'n0:'],
    ['pipeline', 3, undefined, 'n0: n1:0 n2:1'],
    ['hub_spoke', 3, undefined, 'n0: n1:0 n2:0 n0:0,1,2'],
    ['hub_spoke', 3, 2, 'n0: n1:0 n2:0 n0:0,1,2 n1:1,3 n2:2,3 n0:3,4,5'],
    ['fan_out_fan_in', 4, undefined, 'n0: n1:0 n2:0 n3:1,2'],
    ['review_loop', 2, undefined, 'n0: n1:0 n0:0,1'],
    ['review_loop', 3, 2, 'n0: n1:0 n2:0 n0:0,1,2 n1:1,3 n2:2,3 n0:3,4,5'],
    ['debate', 3, undefined, 'n0: n1: n0:0,1 n1:0,1 n2:2,3'],
    ['debate', 3, 1, 'n0: n1: n2:0,1'],
    ['tree', 3, undefined, 'n0: n1:0 n2:0 n0:0,1,2'],
    ['tree', 6, undefined, 'n0: n1:0 n2:0 n3:1 n4:1 n5:2 n0:0,3,4,5'],
    ['mesh', 2, undefined, 'n0: n1: n0:0,1 n1:0,1'],
  ])('%s of %d members in %s rounds has the turns that its shape promises', (kind, count, rounds, wanted) => {
    const result = buildTopology(kind, roles(count), { rounds });
    if (result.verdict === 'refused') throw new Error(result.message);
    expect(
      planSteps(result.topology)
        .map((step) => `${step.nodeId}:${step.reads.join()}`)
        .join(' '),
    ).toBe(wanted);
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
  const graph = (over: object) => ({ kind: 'pipeline', nodes: [node('n0'), node('n1')], edges: [], ...over });

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
    ['member_count', graph({ kind: 'solo' })],
    ['member_count', graph({ kind: 'debate' })],
    ['round_count', graph({ nodes: [node('n0', { turns: 0 }), node('n1')] })],
    ['round_count', graph({ nodes: [node('n0', { turns: MAX_ROUNDS + 2 }), node('n1')] })],
    ['round_count', graph({ nodes: [node('n0', { turns: '2' }), node('n1')] })],
    ['bad_field', graph({ edges: [{ from: 'n0', to: 'n1', when: 'sometimes' }] })],
    ['inert_edge', graph({ edges: [{ from: 'n0', to: 'n1', when: 'next_round' }] })],
    ['unreachable_node', graph({})],
    [
      'unreachable_node',
      graph({
        nodes: ['n0', 'n1', 'n2', 'n3'].map((id) => node(id)),
        edges: [
          { from: 'n0', to: 'n1' },
          { from: 'n2', to: 'n3' },
        ],
      }),
    ],
    [
      'cycle',
      graph({
        nodes: [node('n0', { turns: 2 }), node('n1')],
        edges: [
          { from: 'n0', to: 'n1', when: 'at_end' },
          { from: 'n1', to: 'n0' },
        ],
      }),
    ],
  ])('is refused by %s: %j', (reason, document) => {
    expect(validateTopology(document)).toMatchObject({ verdict: 'refused', reason });
  });

  it('that is refused for its kind is told all kinds', () => {
    const refusal = validateTopology(graph({ kind: 'swarm' }));
    expect(refusal).toMatchObject({ message: expect.stringContaining(TOPOLOGY_KINDS.join(', ')) });
  });

  it('may be connected against the direction of its edges alone', () => {
    const nodes = ['n0', 'n1', 'n2'].map((id) => node(id));
    const edges = [
      { from: 'n1', to: 'n0' },
      { from: 'n1', to: 'n2' },
    ];
    expect(validateTopology(graph({ nodes, edges }))).toMatchObject({ verdict: 'valid' });
  });

  it('never breaks the parser, and what is accepted can be planned', () => {
    const id = fc.constantFrom('n0', 'n1', 'n2', 'n3');
    const graphs = fc.record({
      kind: fc.constantFrom(...TOPOLOGY_KINDS, 'swarm', 3),
      nodes: fc.array(fc.record({ id, role: fc.constantFrom('a', ' ', 'b'), turns: fc.integer({ min: 1, max: 4 }) }), { maxLength: 5 }),
      edges: fc.array(fc.record({ from: id, to: id, when: fc.constantFrom('next_round', 'at_end', undefined) }), { maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.oneof(fc.anything(), graphs), (document) => {
        const checked = validateTopology(document);
        if (checked.verdict === 'refused') return TOPOLOGY_REASONS.includes(checked.reason);
        const steps = planSteps(checked.topology);
        return steps.every((step, at) => step.step === at && step.reads.every((read) => read < at));
      }),
      { numRuns: 500 },
    );
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
  const check = (topologyKind: string, members: readonly unknown[], availableBackends = ['claude', 'codex'], missionBackend?: string) =>
    validateRoster({ topologyKind, members }, { availableBackends, missionBackend });

  it.each<[string, string, readonly { role: string; backend?: string }[]]>([
    ['roster_empty', 'nonsense', []],
    ['roster_too_many_members', 'nonsense', Array.from({ length: 7 }, () => ({ role: '' }))],
    ['roster_unknown_topology', 'nonsense', [{ role: '' }]],
    ['roster_blank_role', 'solo', [{ role: ' ', backend: 'nope' }]],
    ['roster_unknown_backend', 'solo', [{ role: 'a', backend: 'nope' }]],
    ['roster_unbuildable', 'solo', [{ role: 'a' }, { role: 'b' }]],
    ['roster_malformed', 'solo', ['coder' as never]],
  ])('is refused by %s, in this order', (reason, kind, members) => {
    expect(check(kind, members)).toMatchObject({ verdict: 'refused', reason });
  });

  it.each<[string, unknown]>([
    ['no object', null],
    ['no object', []],
    ['no text as topologyKind', { members: [] }],
    ['no list of members', { topologyKind: 'solo' }],
    ['rounds of the roster are no number', { topologyKind: 'solo', members: [], rounds: 'two' }],
    ['unknown key "kind"', { kind: 'solo', topologyKind: 'solo', members: [] }],
    ['unknown key "image"', { topologyKind: 'solo', members: [{ role: 'a', image: 'x' }] }],
    ['no text as role', { topologyKind: 'solo', members: [{}] }],
    ['backend of member 0', { topologyKind: 'solo', members: [{ role: 'a', backend: 7 }] }],
    ['rationale of member 0', { topologyKind: 'solo', members: [{ role: 'a', rationale: 'x'.repeat(2001) }] }],
  ])('that is malformed is told: %s', (words, document) => {
    const result = validateRoster(document, { availableBackends: [] });
    expect(result).toMatchObject({ reason: 'roster_malformed', message: expect.stringContaining(words) });
  });

  it('is told every refusal at once, the first of the order as its reason', () => {
    const result = check('swarm', [member({ role: ' ' }), member({ backend: 'nope' })]);
    expect(result).toMatchObject({
      reason: 'roster_unknown_topology',
      refusals: [{ reason: 'roster_unknown_topology' }, { reason: 'roster_blank_role' }, { reason: 'roster_unknown_backend' }],
    });
  });

  it('may name its rounds, within those of the kind', () => {
    const members = [{ role: 'a' }, { role: 'b', backend: null }];
    const known = { availableBackends: [] };
    expect(validateRoster({ topologyKind: 'review_loop', members, rounds: 2 }, known)).toMatchObject({
      topology: { nodes: [{ turns: 3 }, { turns: 2 }] },
    });
    expect(validateRoster({ topologyKind: 'review_loop', members, rounds: 4 }, known)).toMatchObject({ reason: 'roster_unbuildable' });
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

describe('drawings of rounds', () => {
  it('mark how many turns a member takes and which edges lead into the next round', () => {
    const dot = renderDot(built('review_loop', 2));
    expect(dot).toContain('n0 [label="role 0 (2 turns)"]');
    expect(dot).toContain('n0 -> n1;');
    expect(dot).toContain('n1 -> n0 [label="next round", style=dashed, constraint=false];');
    expect(renderMermaid(built('debate', 3))).toMatch(/n1 -\. next round \.-> n0\n[\s\S]*n0 -- at the end --> n2\n/);
  });
});

describe('what others can see', () => {
  it('is fixed: kinds, reasons and limits', () => {
    expect(TOPOLOGY_KINDS).toEqual(['solo', 'pipeline', 'hub_spoke', 'fan_out_fan_in', 'review_loop', 'debate', 'tree', 'mesh']);
    expect([MAX_MEMBERS, MAX_ROUNDS, MAX_STEPS, MAX_PARALLEL]).toEqual([6, 3, 24, 6]);
    expect(ROSTER_REASONS).toHaveLength(7);
    expect(TOPOLOGY_REASONS).toHaveLength(19);
  });
});

import { EDGE_TIMES, type EdgeTime, findKind, TOPOLOGY_KINDS, type TopologyKind } from './catalogue.ts';
import { MAX_MEMBERS, MAX_NAME_LENGTH, MAX_ROLE_LENGTH, MAX_ROUNDS } from './limits.ts';
import { type Refusal, refuse, type TopologyReason } from './reasons.ts';
import { unrollGraph } from './unroll-graph.ts';

/** One member of the graph. Absent names are inherited from the mission. */
export interface TopologyNode {
  /** `n0`, `n1`, ... */
  readonly id: string;
  readonly role: string;
  readonly backend?: string;
  readonly model?: string;
  readonly seat?: string;
  /** Turns it takes, one per round; absent = 1. */
  readonly turns?: number;
}

/** `to` runs after `from` and reads its closing report. */
export interface TopologyEdge {
  readonly from: string;
  readonly to: string;
  /** Absent = in the same round. */
  readonly when?: EdgeTime;
}

/** A graph of turns; its rounds written out have no cycle. Plain JSON. */
export interface Topology {
  readonly kind: TopologyKind;
  readonly nodes: readonly TopologyNode[];
  readonly edges: readonly TopologyEdge[];
}

type Fields = Readonly<Record<string, unknown>>;
type Checked<T> = T | Refusal<TopologyReason>;

/** Parses an untrusted document as the executor's own type; unknown keys are refused. */
export function validateTopology(document: unknown): { readonly verdict: 'valid'; readonly topology: Topology } | Refusal<TopologyReason> {
  const fields = fieldsOf(document, ['kind', 'nodes', 'edges'], 'the topology');
  if (isRefusal(fields)) return fields;
  const entry = typeof fields.kind === 'string' ? findKind(fields.kind) : undefined;
  if (entry === undefined) return refuse('unknown_kind', `the topology has no known kind; known: ${TOPOLOGY_KINDS.join(', ')}`);
  const nodes = parseNodes(fields.nodes);
  if (isRefusal(nodes)) return nodes;
  if (nodes.length < entry.minMembers || nodes.length > entry.maxMembers)
    return refuse(
      'member_count',
      `a topology ${entry.kind} of ${nodes.length} nodes is outside ${entry.minMembers} to ${entry.maxMembers}`,
    );
  const edges = parseEdges(fields.edges, nodes);
  if (isRefusal(edges)) return edges;
  const topology: Topology = { kind: entry.kind, nodes, edges };
  return refuseGraph(topology) ?? { verdict: 'valid', topology };
}

function refuseGraph(topology: Topology): Refusal<TopologyReason> | undefined {
  if (unrollGraph(topology) === undefined) return refuse('cycle', 'the topology has a cycle');
  const island = unreachableNode(topology);
  if (island !== undefined) return refuse('unreachable_node', `no edges lead from the first node to ${island}, in either direction`);
  return undefined;
}

/** A node that is connected with the first one by no edges at all; without cycles every other node is reached. */
function unreachableNode({ nodes, edges }: Topology): string | undefined {
  const reached = new Set(nodes.slice(0, 1).map((node) => node.id));
  for (const id of reached) {
    for (const edge of edges) {
      if (edge.from === id) reached.add(edge.to);
      if (edge.to === id) reached.add(edge.from);
    }
  }
  return nodes.find((node) => !reached.has(node.id))?.id;
}

function parseNodes(value: unknown): Checked<readonly TopologyNode[]> {
  if (!Array.isArray(value) || value.length === 0) return refuse('no_nodes', 'the topology has no nodes');
  if (value.length > MAX_MEMBERS) return refuse('too_many_nodes', `the topology has ${value.length} nodes; the limit is ${MAX_MEMBERS}`);
  const list: readonly unknown[] = value;
  const nodes: TopologyNode[] = [];
  for (const [at, item] of list.entries()) {
    const node = parseNode(item, at);
    if (isRefusal(node)) return node;
    if (nodes.some((other) => other.id === node.id)) return refuse('duplicate_node', `two nodes are called ${node.id}`);
    nodes.push(node);
  }
  return nodes;
}

function parseNode(value: unknown, at: number): Checked<TopologyNode> {
  const fields = fieldsOf(value, ['id', 'role', 'backend', 'model', 'seat', 'turns'], `node ${at}`);
  if (isRefusal(fields)) return fields;
  const { id, role, turns } = fields;
  if (typeof id !== 'string' || !/^n(?:0|[1-9][0-9]{0,3})$/.test(id))
    return refuse('bad_node_id', `node ${at} has no id of the form n0, n1, ...`);
  if (typeof role !== 'string' || role.trim() === '') return refuse('blank_role', `node ${id} has no role`);
  if (role.length > MAX_ROLE_LENGTH || hasControl(role))
    return refuse('bad_field', `the role of node ${id} is longer than ${MAX_ROLE_LENGTH} characters or holds control characters`);
  if (turns !== undefined && !isTurns(turns))
    return refuse('round_count', `the turns of node ${id} are no whole number from 1 to ${MAX_ROUNDS + 1}`);
  const named: Array<[string, string]> = [];
  for (const key of ['backend', 'model', 'seat']) {
    const name = fields[key];
    if (name === undefined) continue;
    if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_NAME_LENGTH || hasControl(name)) {
      return refuse('bad_field', `the ${key} of node ${id} is blank, longer than ${MAX_NAME_LENGTH} characters or no text`);
    }
    named.push([key, name]);
  }
  return { id, role, ...Object.fromEntries(named), ...(turns === undefined ? {} : { turns }) };
}

/** A shape in which one member both opens and closes has one turn more than rounds. */
function isTurns(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_ROUNDS + 1;
}

function parseEdges(value: unknown, nodes: readonly TopologyNode[]): Checked<readonly TopologyEdge[]> {
  if (!Array.isArray(value)) return refuse('bad_field', 'the topology has no list of edges');
  const turns = new Map(nodes.map((node) => [node.id, node.turns ?? 1]));
  const list: readonly unknown[] = value;
  const edges: TopologyEdge[] = [];
  for (const [at, item] of list.entries()) {
    const fields = fieldsOf(item, ['from', 'to', 'when'], `edge ${at}`);
    if (isRefusal(fields)) return fields;
    const { from, to } = fields;
    const when = EDGE_TIMES.find((known) => known === fields.when);
    if (typeof from !== 'string' || typeof to !== 'string' || !turns.has(from) || !turns.has(to))
      return refuse('dangling_edge', `edge ${at} does not connect two nodes of the topology`);
    if (fields.when !== undefined && when === undefined)
      return refuse('bad_field', `edge ${at} holds at no known time; known: ${EDGE_TIMES.join(', ')}`);
    if (from === to) return refuse('self_edge', `edge ${at} leads from ${from} to itself`);
    if (edges.some((edge) => edge.from === from && edge.to === to && edge.when === when))
      return refuse('duplicate_edge', `the edge from ${from} to ${to} is there twice`);
    if (when === 'next_round' && turns.get(to) === 1)
      return refuse('inert_edge', `the edge from ${from} to ${to} is for a next round, and ${to} takes one turn`);
    edges.push({ from, to, ...(when === undefined ? {} : { when }) });
  }
  return edges;
}

function fieldsOf(value: unknown, allowed: readonly string[], what: string): Checked<Fields> {
  if (!isObject(value)) return refuse('not_an_object', `${what} is no object`);
  const extra = Object.keys(value).find((key) => !allowed.includes(key));
  if (extra !== undefined) return refuse('unknown_key', `${what} has the unknown key ${JSON.stringify(extra.slice(0, 64))}`);
  return value;
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isRefusal<T>(value: Checked<T>): value is Refusal<TopologyReason> {
  return isObject(value) && value.verdict === 'refused';
}

export function hasControl(text: string): boolean {
  return /[\u0000-\u001f\u007f]/.test(text);
}

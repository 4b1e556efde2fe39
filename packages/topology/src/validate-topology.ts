import { findKind, TOPOLOGY_KINDS, type TopologyKind } from './catalogue.ts';
import { MAX_MEMBERS, MAX_NAME_LENGTH, MAX_ROLE_LENGTH } from './limits.ts';
import { type Refusal, refuse, type TopologyReason } from './reasons.ts';

/** One turn of the graph. Absent names are inherited from the mission. */
export interface TopologyNode {
  /** `n0`, `n1`, ... */
  readonly id: string;
  readonly role: string;
  readonly backend?: string;
  readonly model?: string;
  readonly seat?: string;
}

/** `to` runs after `from` and reads its closing report. */
export interface TopologyEdge {
  readonly from: string;
  readonly to: string;
}

/** A graph of turns without cycles; plain JSON. */
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
  const kind = typeof fields.kind === 'string' ? findKind(fields.kind)?.kind : undefined;
  if (kind === undefined) return refuse('unknown_kind', `the topology has no known kind; known: ${TOPOLOGY_KINDS.join(', ')}`);
  const nodes = parseNodes(fields.nodes);
  if (isRefusal(nodes)) return nodes;
  const edges = parseEdges(fields.edges, nodes);
  if (isRefusal(edges)) return edges;
  const topology: Topology = { kind, nodes, edges };
  if (orderNodes(topology) === undefined) return refuse('cycle', 'the topology has a cycle');
  return { verdict: 'valid', topology };
}

/** Nodes in the order they run, ties by their place in the list; undefined for a graph with a cycle. */
export function orderNodes(topology: Topology): readonly TopologyNode[] | undefined {
  const waiting = [...topology.nodes];
  const done = new Set<string>();
  const order: TopologyNode[] = [];
  while (waiting.length > 0) {
    const at = waiting.findIndex((node) => topology.edges.every((edge) => edge.to !== node.id || done.has(edge.from)));
    const [node] = at < 0 ? [] : waiting.splice(at, 1);
    if (node === undefined) return undefined;
    done.add(node.id);
    order.push(node);
  }
  return order;
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
  const fields = fieldsOf(value, ['id', 'role', 'backend', 'model', 'seat'], `node ${at}`);
  if (isRefusal(fields)) return fields;
  const { id, role } = fields;
  if (typeof id !== 'string' || !/^n(?:0|[1-9][0-9]{0,3})$/.test(id))
    return refuse('bad_node_id', `node ${at} has no id of the form n0, n1, ...`);
  if (typeof role !== 'string' || role.trim() === '') return refuse('blank_role', `node ${id} has no role`);
  if (role.length > MAX_ROLE_LENGTH || hasControl(role))
    return refuse('bad_field', `the role of node ${id} is longer than ${MAX_ROLE_LENGTH} characters or holds control characters`);
  const named: Array<[string, string]> = [];
  for (const key of ['backend', 'model', 'seat']) {
    const name = fields[key];
    if (name === undefined) continue;
    if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_NAME_LENGTH || hasControl(name)) {
      return refuse('bad_field', `the ${key} of node ${id} is blank, longer than ${MAX_NAME_LENGTH} characters or no text`);
    }
    named.push([key, name]);
  }
  return { id, role, ...Object.fromEntries(named) };
}

function parseEdges(value: unknown, nodes: readonly TopologyNode[]): Checked<readonly TopologyEdge[]> {
  if (!Array.isArray(value)) return refuse('bad_field', 'the topology has no list of edges');
  const ids = new Set(nodes.map((node) => node.id));
  const list: readonly unknown[] = value;
  const edges: TopologyEdge[] = [];
  for (const [at, item] of list.entries()) {
    const fields = fieldsOf(item, ['from', 'to'], `edge ${at}`);
    if (isRefusal(fields)) return fields;
    const { from, to } = fields;
    if (typeof from !== 'string' || typeof to !== 'string' || !ids.has(from) || !ids.has(to)) {
      return refuse('dangling_edge', `edge ${at} does not connect two nodes of the topology`);
    }
    if (from === to) return refuse('self_edge', `edge ${at} leads from ${from} to itself`);
    if (edges.some((edge) => edge.from === from && edge.to === to))
      return refuse('duplicate_edge', `the edge from ${from} to ${to} is there twice`);
    edges.push({ from, to });
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

function hasControl(text: string): boolean {
  return /[\u0000-\u001f\u007f]/.test(text);
}
